package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// withoutDryRun lists the commands that only read, or that are quick and destroy nothing.
// withoutJSON lists the commands that print nothing, or the output of another program.
var (
	withoutDryRun = []string{
		"completion", "debug", "doctor", "exec", "export", "extension render", "extension roll-out", "fault list", "image build",
		"kubeconfig", "kubectl", "logs", "mutate list", "pull", "push", "shell", "shoot get", "snapshot list", "status", "test", "trace", "version",
	}
	withoutJSON = []string{
		"completion", "down", "exec", "extension render", "extension roll-out", "kubectl", "mutate clear", "mutate plant", "shell",
		"shoot apply", "shoot delete", "shoot disable", "shoot hibernate", "shoot migrate", "shoot reconcile", "shoot restore",
		"shoot rotate-ca-complete", "shoot rotate-ca-start", "shoot wake", "snapshot delete", "test", "up",
	}
)

// TestFlagsOfAllCommands: a command that destroys something or takes long has --dry-run, and a
// command that prints an answer has --json.
func TestFlagsOfAllCommands(t *testing.T) {
	names := map[string]bool{}
	for _, command := range leaves(New(program.Streams{})) {
		name := strings.TrimPrefix(command.CommandPath(), "testbed ")
		names[name] = true
		if has := command.Flags().Lookup("dry-run") != nil; has == slices.Contains(withoutDryRun, name) {
			t.Errorf("%s: has --dry-run: %t", name, has)
		}
		if has := command.Flags().Lookup("json") != nil; has == slices.Contains(withoutJSON, name) {
			t.Errorf("%s: has --json: %t", name, has)
		} else if output := command.Flags().ShorthandLookup("o"); (output != nil) != has {
			t.Errorf("%s: has --json: %t, but -o: %v", name, has, output)
		}
		if command.Short == "" || strings.HasSuffix(command.Short, ".") {
			t.Errorf("%s: short help %q", name, command.Short)
		}
	}
	for _, name := range slices.Concat(withoutDryRun, withoutJSON) {
		if !names[name] {
			t.Errorf("there is no command %q", name)
		}
	}
}

func leaves(command *cobra.Command) []*cobra.Command {
	if !command.HasSubCommands() {
		return []*cobra.Command{command}
	}
	var all []*cobra.Command
	for _, below := range command.Commands() {
		all = append(all, leaves(below)...)
	}
	return all
}

// TestDryRuns are those that need no testbed. Should one reach what it plans, there is no testbed
// of that name.
func TestDryRuns(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"a bug", []string{"mutate", "plant", "cleaner-skipped", "--dry-run", "--prefix", nobodys}, "- if nodesToClean(t.cluster) {\n+ if false {\n", 0},
		{"no bug", []string{"mutate", "clear", "--dry-run", "--prefix", nobodys}, "from the unchanged sources", 0},
		{"an unknown bug", []string{"mutate", "plant", "rust", "--dry-run"}, "", program.ExitUsage},
		{"a proof", []string{"mutate", "prove", "--dry-run", "--prefix", nobodys, "volume-lost"}, "make e2e KEEP=1 RUN='^(grow-volume)$' MUTANT=volume-lost", 0},
		{"a snapshot that is not there", []string{"snapshot", "delete", "x", "--dry-run", "--prefix", nobodys}, "", program.ExitUsage},
		{"a fault with a mistake", []string{"fault", "add", "cache/alpha", "rust", "--dry-run"}, "", program.ExitUsage},
		{"a loss that nobody ends", []string{"fault", "add", "node/worker2", "loss", "--for", "1m", "--dry-run", "--prefix", nobodys}, "", program.ExitUsage},
		{"a field bug", []string{"reproduce", "s22", "--dry-run", "--prefix", nobodys}, "# s22: ", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, stderr := run(t, "", tc.args...)
			if code != tc.code || !strings.Contains(out, tc.want) || (out == "") != (tc.code != 0) {
				t.Errorf("exit code %d, output %q, standard error %q", code, out, stderr)
			}
		})
	}
}

// TestDryRunsForPrograms: what would be done is one JSON array where the command knows --json.
func TestDryRunsForPrograms(t *testing.T) {
	for _, args := range [][]string{
		{"mutate", "prove", "--dry-run", "--json", "--prefix", nobodys, "volume-lost"},
		{"reproduce", "s22", "--json", "--dry-run", "--prefix", nobodys},
	} {
		t.Run(args[0], func(t *testing.T) {
			code, out, stderr := run(t, "", args...)
			var lines []string
			if err := json.Unmarshal([]byte(out), &lines); code != program.ExitFine || err != nil || len(lines) < 2 {
				t.Errorf("exit code %d, %v: %q, standard error %q", code, err, out, stderr)
			}
			withProse, prose, _ := run(t, "", append(args, "--json=false")...)
			if want := strings.Join(lines, "\n") + "\n"; withProse != program.ExitFine || prose != want {
				t.Errorf("for people: exit code %d, %q, want %q", withProse, prose, want)
			}
		})
	}
	var out bytes.Buffer
	if err := writePlan(&out, nil, true); err != nil || out.String() != "[]\n" {
		t.Errorf("nothing to do: %q, %v", &out, err)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, out, _ := run(t, "", "completion", shell); code != program.ExitFine || !strings.Contains(out, "testbed") {
			t.Errorf("%s: exit code %d, %d bytes", shell, code, len(out))
		}
	}
	if code, _, stderr := run(t, "", "completion", "tcsh"); code != program.ExitUsage || !strings.Contains(stderr, "tcsh") {
		t.Errorf("another shell: exit code %d, %q", code, stderr)
	}
	for line, want := range map[string]string{
		"kubectl ":          "shoot",
		"mutate plant vol":  "volume-lost",
		"mut":               "mutate",
		"shoot rotate-ca-s": "rotate-ca-start",
		"completion f":      "fish",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if _, out, _ := run(t, "", args...); !strings.Contains(out, want) {
			t.Errorf("%q is completed with %q, want %q in it", line, out, want)
		}
	}
}
