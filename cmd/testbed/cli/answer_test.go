package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/fieldbugs"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
	"github.com/gardener-extensions/registry-cache/kind/snapshot"
	"github.com/gardener-extensions/registry-cache/kind/trace"
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
		if next := nextSteps(kindtest.Configured(t, t.TempDir(), config)); !strings.Contains(next, want) {
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

func TestVersion(t *testing.T) {
	version = "v1.2.3"
	t.Cleanup(func() { version = "" })
	code, out, _ := run(t, "", "version")
	if code != program.ExitFine || !strings.HasPrefix(out, "testbed     v1.2.3\ngo          go1.") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	code, out, _ = run(t, "", "version", "-o", "json")
	var versions map[string]string
	if err := json.Unmarshal([]byte(out), &versions); code != program.ExitFine || err != nil {
		t.Fatalf("exit code %d, %v: %q", code, err, out)
	}
	if versions["gardener"] != gardener.Version || !strings.HasPrefix(versions["kubernetes"], "v1.") || !strings.HasPrefix(versions["containerd"], "v2.") {
		t.Errorf("versions %v", versions)
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

// TestCheckTraced: without --follow, a trace without requests is an error with advice.
func TestCheckTraced(t *testing.T) {
	for _, tc := range []struct {
		name   string
		wanted trace.Options
		events int
		want   string
	}{
		{"some requests", trace.Options{Since: time.Minute}, 1, ""},
		{"none until Ctrl-C", trace.Options{Since: time.Minute, Follow: true}, 0, ""},
		{"none from now until Ctrl-C", trace.Options{Follow: true}, 0, ""},
		{"none in that time", trace.Options{Image: "a/b", Since: time.Minute}, 0, "no requests for a/b in the last 1m0s: use -f to wait"},
		{"in no time", trace.Options{Image: "a/b"}, 0, "--since 0 prints no past requests: use -f to wait for requests for a/b, or --since 10m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := checkTraced(tc.wanted, tc.events)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestListBugs(t *testing.T) {
	code, out, _ := run(t, "", "reproduce", "--list")
	if code != program.ExitFine || strings.Count(out, "\n") != len(fieldbugs.All())+1 || !strings.Contains(out, "\ns22  service-recreated  ") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

// saveEmpty saves a snapshot without caches for the testbed of these options.
func saveEmpty(t *testing.T, options *kind.Options, name string) {
	t.Helper()
	draft, err := snapshot.Store(filepath.Join(options.Directory, options.Prefix) + ".snapshots").Begin(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestWriteSnapshots(t *testing.T) {
	if code, out, _ := run(t, "", "--prefix", absent, "snapshot", "list", "--json"); code != program.ExitFine || out != "[]\n" {
		t.Errorf("none: exit code %d, standard output %q", code, out)
	}
	one := snapshot.Snapshot{Name: "warm", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local), Volumes: []snapshot.Volume{
		{Claim: "cache-volume-registry-a-0", Upstream: "a.test", Bytes: 5 << 20}, {Claim: "cache-volume-registry-b-0", Upstream: "b.test", Bytes: 10240},
	}}
	var out bytes.Buffer
	if err := writeSnapshots(&out, []snapshot.Snapshot{one}); err != nil {
		t.Fatal(err)
	}
	if err := writeSnapshot(&out, &one); err != nil {
		t.Fatal(err)
	}
	want := `NAME  SAVED                SIZE     VOLUMES
warm  2026-01-02 03:04:05  5.01MiB  2
warm      5.01MiB
  a.test  5MiB   cache-volume-registry-a-0
  b.test  10KiB  cache-volume-registry-b-0
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
