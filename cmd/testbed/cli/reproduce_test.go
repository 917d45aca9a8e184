package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/fieldbugs"
)

// TestReproduceRefuses what cannot end well, before a fault is cleared or a Shoot is applied.
func TestReproduceRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, folder string
		args         []string
		want         string
	}{
		{"an unknown bug", "../../..", []string{"s99"}, "s99"},
		{"another testbed", "../../..", []string{"s22", "--prefix", "second"}, "on the testbed registry-cache, and not on second"},
		{"another folder", ".", []string{"s22"}, "in the root of the repository"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(tc.folder)
			var out, stderr bytes.Buffer
			std := program.Streams{Out: &out, Err: &stderr}
			code := program.Run(t.Context(), New(std), std, append([]string{"reproduce"}, tc.args...))
			if code != program.ExitUsage || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("exit code %d, %s; want %q", code, &stderr, tc.want)
			}
			if strings.Contains(stderr.String(), "$ testbed") {
				t.Error("something was run")
			}
		})
	}
}

func TestListBugs(t *testing.T) {
	code, out, _ := run(t, "", "reproduce", "--list")
	if code != program.ExitFine || strings.Count(out, "\n") != len(fieldbugs.All())+1 || !strings.Contains(out, "s22  service-recreated  ") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	for _, args := range [][]string{{"reproduce", "--list", "s22"}, {"reproduce"}} {
		if code, _, stderr := run(t, "", args...); code != program.ExitUsage {
			t.Errorf("%q: exit code %d, %s", args, code, stderr)
		}
	}
	_, byNumber, _ := run(t, "", "reproduce", "--dry-run", "s22")
	if _, byName, _ := run(t, "", "reproduce", "--dry-run", "service-recreated"); byName == "" || byName != byNumber {
		t.Errorf("by name %q, by number %q", byName, byNumber)
	}
}

// TestExplainResult keeps whose fault it was.
func TestExplainResult(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
	}{
		{errors.New("the claim does not hold"), program.ExitFailed},
		{fmt.Errorf("s1: %w", &fieldbugs.CommandError{Code: program.ExitFailed}), program.ExitFailed},
		{fmt.Errorf("s1: %w", &fieldbugs.CommandError{Code: program.ExitEnvironment}), program.ExitEnvironment},
	} {
		err := explainResult(&fieldbugs.Result{ID: "s1", Verdict: fieldbugs.Broken, Reason: "why", Err: tc.err})
		if program.ExitCode(err) != tc.code || !strings.Contains(err.Error(), "s1 broken: why") {
			t.Errorf("%v: exit code %d, error %v", tc.err, program.ExitCode(err), err)
		}
	}
}
