package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

func TestWrongUse(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "name a command"},
		{"unknown command", []string{"destroy"}, `unknown command "destroy"`},
		{"stray argument", []string{"up", "now"}, `"now"`},
		{"unknown flag", []string{"down", "--force"}, "unknown flag"},
		{"bad prefix", []string{"up", "--prefix", "No_Prefix"}, "prefix"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			std := program.Streams{Out: &out, Err: &stderr}
			if code := program.Run(t.Context(), New(std), std, tc.args); code != program.ExitUsage {
				t.Errorf("exit code %d, want %d", code, program.ExitUsage)
			}
			if !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("stderr %q does not say %q", stderr.String(), tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("prose on stdout: %q", out.String())
			}
		})
	}
}

// TestWhatTheMachineLacks ties the errors of the library to the exit code that their users rely on.
func TestWhatTheMachineLacks(t *testing.T) {
	for name, err := range map[string]error{"no engine": &engine.Missing{}, "machine too small": &preflight.Failures{}} {
		if code := program.ExitCode(fmt.Errorf("up: %w", err)); code != program.ExitEnvironment {
			t.Errorf("%s: exit code %d, want %d", name, code, program.ExitEnvironment)
		}
	}
}

// TestGroups: the root help lists every command in a group, except those of cobra and completion.
func TestGroups(t *testing.T) {
	code, out, _ := run(t, "", "--help")
	for _, title := range []string{"Testbed:", "Shoot:", "Break:", "Look:", "Develop:"} {
		if code != program.ExitFine || !strings.Contains(out, "\n"+title+"\n  ") {
			t.Errorf("exit code %d, no commands below %q in:\n%s", code, title, out)
		}
	}
	for _, command := range New(program.Streams{}).Commands() {
		if command.GroupID == "" && command.Name() != "completion" && command.Name() != "version" {
			t.Errorf("%s has no group", command.Name())
		}
	}
}
