package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/cachetest/fieldbugs"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

func TestNextSaysWhatIsCached(t *testing.T) {
	manifest := configuration.Default()
	manifest.Shoot.Manifest, manifest.Upstreams = "/a/shoot.yaml", []configuration.Upstream{{Name: "alpha"}}
	direct := configuration.Default()
	direct.Upstreams = []configuration.Upstream{{Name: "one", Cached: ptr.To(false)}}
	for want, config := range map[string]*configuration.Testbed{
		"pulls of alpha.upstream.test and beta.upstream.test go through the caches as soon as these are ready, pulls of gamma.upstream.test go direct": nil,
		"The testbed is up: pulls of one.upstream.test go direct.\n":                                                                                   direct,
		"The testbed is up: the Shoot is from ":                                                                                                        manifest,
	} {
		if next := nextSteps(kindtest.New(t, kind.Options{Configuration: config})); !strings.Contains(next, want) {
			t.Errorf("want %q in:\n%s", want, next)
		}
	}
}

func TestNextNamesTheTestbed(t *testing.T) {
	for _, tc := range []struct {
		prefix    string
		want, not string
	}{
		{kind.DefaultPrefix, "make down ", "--prefix"},
		{"other", "bin/testbed down --prefix other ", "make "},
	} {
		t.Run(tc.prefix, func(t *testing.T) {
			testbed, err := kind.New(kind.Options{Prefix: tc.prefix})
			if err != nil {
				t.Fatal(err)
			}
			next := nextSteps(testbed)
			if !strings.Contains(next, tc.want) || strings.Contains(next, tc.not) {
				t.Errorf("want %q and not %q in:\n%s", tc.want, tc.not, next)
			}
		})
	}
}

// TestNextInGarden: the command names the testbed, and its flags come before the cluster.
func TestNextInGarden(t *testing.T) {
	for prefix, want := range map[string]string{kind.DefaultPrefix: "kubectl garden get", "other": "kubectl --prefix other garden get"} {
		if next := nextSteps(kindtest.New(t, kind.Options{Prefix: prefix, Garden: ptr.To(true)})); !strings.Contains(next, want) {
			t.Errorf("want %q in:\n%s", want, next)
		}
		if next := nextSteps(kindtest.New(t, kind.Options{Prefix: prefix})); strings.Contains(next, "kubectl garden") || strings.Contains(next, " garden get") {
			t.Errorf("without a garden:\n%s", next)
		}
	}
}

func TestWithoutDashes(t *testing.T) {
	for _, tc := range []struct{ args, want []string }{
		{[]string{"worker", "--", "ls", "-l"}, []string{"worker", "ls", "-l"}},
		{[]string{"worker", "ls", "--", "-l"}, []string{"worker", "ls", "--", "-l"}},
		{[]string{"worker"}, []string{"worker"}},
	} {
		if got := withoutDashes(tc.args); !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %q, want %q", tc.args, got, tc.want)
		}
	}
}

func TestFaultHelp(t *testing.T) {
	var out bytes.Buffer
	std := program.Streams{Out: &out, Err: &out}
	if code := program.Run(t.Context(), newFaultCommand(&kind.Options{}), std, []string{"add", "--help"}); code != program.ExitFine {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"upstream/", "truncate", "cache/", "blackhole", "node/", "disk-full", "--for", "--header"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help lacks %q", want)
		}
	}
}

func TestListBugs(t *testing.T) {
	code, out, _ := run(t, "", "reproduce", "--list")
	if code != program.ExitFine || strings.Count(out, "\n") != len(fieldbugs.All())+1 || !strings.Contains(out, "\ns22  service-recreated  ") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

// TestExamination: what the machine lacks is an environment error with a fix, and does not hide the
// status.
func TestExamination(t *testing.T) {
	found := examination{Machine: "2.0 GiB memory", Testbed: &status.Testbed{Prefix: absent}}
	if err := found.err(); err != nil {
		t.Errorf("without a problem: %v", err)
	}
	found.Problems = []bringup.Failure{{Problem: "2.0 GiB of memory, 6.0 GiB needed", Fix: "use a larger machine"}}
	if err := found.err(); program.ExitCode(err) != program.ExitEnvironment || !strings.Contains(err.Error(), "6.0 GiB needed: use a larger machine") {
		t.Errorf("exit code %d, error %v", program.ExitCode(err), err)
	}
	var out bytes.Buffer
	if err := found.write(&out); err != nil || out.String() != "MACHINE  2.0 GiB memory\ntestbed absent-testbed: not found; start it with: bin/testbed up --prefix absent-testbed\n" {
		t.Errorf("output %q, error %v", &out, err)
	}
}
