package fieldbugs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// console is a fake testbed that records command lines and prints an output for each.
type console struct {
	lines  []string
	refuse string // command lines with this text fail
	shoot  string // the output of `shoot get`; readyShoot if empty
}

func (c *console) execute(_ context.Context, args []string, out, err io.Writer) int {
	line := strings.Join(args, " ")
	c.lines = append(c.lines, line)
	if c.refuse != "" && strings.Contains(line, c.refuse) {
		fmt.Fprintln(err, "no")
		return 3
	}
	answer := "{}"
	switch line {
	case "shoot get --json":
		answer = cmp.Or(c.shoot, readyShoot)
	case getResource:
		answer = applied
	case getCaches:
		answer = rolledOut
	}
	fmt.Fprintln(out, answer)
	return 0
}

// The commands that Rig.begin repeats until the caches are rolled out, and their final output.
const (
	getResource = "kubectl seed get --namespace=shoot--local--local --output=json managedresource extension-registry-cache"
	getCaches   = "kubectl shoot get --namespace=kube-system --output=json statefulsets --selector=upstream-host"
	applied     = `{"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "conditions": [{"type": "ResourcesApplied", "status": "True"}]}}`
	rolledOut   = `{"items": [{"metadata": {"name": "registry-alpha", "generation": 2},
		"status": {"observedGeneration": 2, "updatedReplicas": 1, "readyReplicas": 1}}]}`
)

// readyShoot is the output of `shoot get` when all workers have the mirror of the only cache.
const readyShoot = `{
  "namespace": "shoot--local--local",
  "extensions": [{"type": "registry-cache", "providerStatus": {
    "apiVersion": "registry.extensions.gardener.cloud/v1alpha3", "kind": "RegistryStatus",
    "caches": [{"upstream": "alpha.upstream.test", "endpoint": "http://10.96.0.5:5000", "remoteURL": "http://alpha.upstream.test"}]}}],
  "nodes": [
    {"name": "shoot-control-plane", "ready": true},
    {"name": "shoot-worker", "ready": true, "mirrors": [{"upstream": "alpha.upstream.test", "hosts": ["http://10.96.0.5:5000"]}]},
    {"name": "shoot-worker2", "ready": true, "mirrors": [{"upstream": "alpha.upstream.test", "hosts": ["http://10.96.0.5:5000"]}]}]}`

func TestVerdicts(t *testing.T) {
	const claim = "a pull is quick"
	unmet := &Unmet{Claim: claim, Seen: "7 s"}
	known := &Known{Claim: claim, Because: "of X"}
	for name, test := range map[string]struct {
		known  *Known
		err    error
		want   Verdict
		reason string
		good   bool
	}{
		"it holds":                        {nil, nil, Held, "", true},
		"a claim does not hold":           {nil, unmet, Broken, "7 s", false},
		"it cannot be reproduced":         {nil, errors.New("no node"), Broken, "no node", false},
		"a known failure":                 {known, fmt.Errorf("step: %w", unmet), KnownBroken, "of X", true},
		"a known failure holds":           {known, nil, Fixed, "remove the mark", false},
		"a known failure fails otherwise": {known, &Unmet{Claim: "other"}, Broken, "got another one", false},
		"a known failure has an error":    {known, errors.New("no node"), Broken, "no node", false},
	} {
		t.Run(name, func(t *testing.T) {
			bug := Bug{ID: "s0", Known: test.known, Reproduce: func(context.Context, *Rig) error { return test.err }}
			result := Reproduce(t.Context(), bug, (&console{}).execute, Options{Transcript: io.Discard})
			if result.Verdict != test.want || result.Good() != test.good || !strings.Contains(result.Reason, test.reason) {
				t.Errorf("%s, good: %t; want %s, %q", result, result.Good(), test.want, test.reason)
			}
		})
	}
}

// untilBegun contains the lines of the page that follow `shoot apply`.
var untilBegun = []string{
	"# until all workers have the mirrors of all caches:", "testbed shoot get",
	"# until the caches run with the current configuration:",
	"testbed " + strings.Replace(getResource, " --output=json", "", 1), "testbed " + strings.Replace(getCaches, " --output=json", "", 1),
}

// TestFaultsAreCleared checks that faults are deleted at the start and at the end, even after a
// signal.
func TestFaultsAreCleared(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	shell := &console{}
	var transcript bytes.Buffer
	broken := 0
	result := Reproduce(ctx, Bug{ID: "s0", Reproduce: func(ctx context.Context, r *Rig) error {
		cancel()
		return r.Break(ctx, "cache/alpha", "stop")
	}}, shell.execute, Options{Transcript: &transcript, OnBroken: func(context.Context, string) { broken = len(shell.lines) }})
	want := []string{"fault delete", "shoot apply -f " + TwoCaches, "shoot get --json", getResource, getCaches, "fault add cache/alpha stop", "fault delete"}
	if !slices.Equal(shell.lines, want) {
		t.Errorf("%q, want %q", shell.lines, want)
	}
	if broken != len(want)-1 {
		t.Errorf("OnBroken was called after %d commands, want %d, before the faults are deleted", broken, len(want)-1)
	}
	if result.Verdict != Broken || !strings.Contains(transcript.String(), "$ testbed fault add cache/alpha stop") {
		t.Errorf("%s\n%s", result, transcript.String())
	}
	page := slices.Concat([]string{"testbed shoot apply -f " + TwoCaches}, untilBegun, []string{"testbed fault add cache/alpha stop"})
	if !slices.Equal(result.Commands, page) {
		t.Errorf("commands of the page: %q, want %q", result.Commands, page)
	}
}

// TestFailedClearing checks that the verdict is Broken if a fault remains, even for a known
// failure.
func TestFailedClearing(t *testing.T) {
	unmet := &Unmet{Claim: "a pull is quick", Seen: "7 s"}
	for name, test := range map[string]struct {
		known *Known
		err   error
	}{"it held": {}, "a known failure": {&Known{Claim: unmet.Claim, Because: "of X"}, unmet}} {
		t.Run(name, func(t *testing.T) {
			shell := &console{}
			result := Reproduce(t.Context(), Bug{ID: "s0", Known: test.known, Reproduce: func(context.Context, *Rig) error {
				shell.refuse = "fault delete"
				return test.err
			}}, shell.execute, Options{Transcript: io.Discard})
			if result.Verdict != Broken || !strings.Contains(result.Reason, "testbed fault delete: exit code 3: no") {
				t.Errorf("%s", result)
			}
		})
	}
}

// TestAfterwards checks that the changes of a bug are reverted, the last one first, even if a claim
// does not hold.
func TestAfterwards(t *testing.T) {
	var undone []string
	result := Reproduce(t.Context(), Bug{ID: "s0", Reproduce: func(_ context.Context, r *Rig) error {
		for _, name := range []string{"first", "second"} {
			r.Afterwards(func(context.Context) error {
				undone = append(undone, name)
				return nil
			})
		}
		return &Unmet{}
	}}, (&console{}).execute, Options{Transcript: io.Discard})
	if want := []string{"second", "first"}; !slices.Equal(undone, want) || result.Verdict != Broken {
		t.Errorf("%q, want %q; %s", undone, want, result)
	}
}

// TestFailedUndoing checks that a change that cannot be reverted makes the verdict Broken, and that
// the other changes are reverted anyway.
func TestFailedUndoing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first := false
	result := Reproduce(ctx, Bug{ID: "s0", Reproduce: func(_ context.Context, r *Rig) error {
		r.Afterwards(func(ctx context.Context) error {
			first = ctx.Err() == nil
			return nil
		})
		r.Afterwards(func(context.Context) error { return errors.New("the unit does not start") })
		cancel()
		return nil
	}}, (&console{}).execute, Options{Transcript: io.Discard})
	if result.Verdict != Broken || !strings.Contains(result.Reason, "afterwards: the unit does not start") || !first {
		t.Errorf("%s; the other change was reverted after a signal: %t", result, first)
	}
}

// TestOnBroken checks that OnBroken is called once, with a context that has not ended, even if the
// bound of the bug is exceeded.
func TestOnBroken(t *testing.T) {
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for name, test := range map[string]struct {
		ctx    context.Context
		refuse string
		err    error
		want   int
	}{
		"it held":                         {t.Context(), "", nil, 0},
		"a claim does not hold":           {t.Context(), "", &Unmet{}, 1},
		"the clean-up fails":              {t.Context(), "fault delete", nil, 1},
		"both":                            {t.Context(), "fault delete", &Unmet{}, 1},
		"the bound of the scenario is up": {late, "", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			shell, looked := &console{}, 0
			Reproduce(test.ctx, Bug{ID: "s0", Reproduce: func(context.Context, *Rig) error {
				shell.refuse = test.refuse
				return test.err
			}}, shell.execute, Options{Transcript: io.Discard, OnBroken: func(ctx context.Context, reason string) {
				looked++
				if ctx.Err() != nil || reason == "" {
					t.Errorf("context: %v, reason %q", ctx.Err(), reason)
				}
			}})
			if looked != test.want {
				t.Errorf("called %d times, want %d", looked, test.want)
			}
		})
	}
}
