package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/internal/program"
)

// withoutJSON lists the commands that print nothing, one line, YAML, or the output of another
// program.
var withoutJSON = []string{
	"down", "exec", "extension render", "extension roll-out", "gardenlet", "kubeconfig", "kubectl", "push", "reproduce",
	"shoot apply", "shoot delete", "shoot disable", "shoot hibernate", "shoot migrate", "shoot reconcile",
	"shoot rotate-ca-complete", "shoot rotate-ca-start", "shoot wake", "test", "up",
}

// TestFlagsOfAllCommands: each command has --json or is in withoutJSON, and each has a short help
// text.
func TestFlagsOfAllCommands(t *testing.T) {
	names := map[string]bool{}
	for _, command := range leaves(newCommand(program.Streams{})) {
		name := strings.TrimPrefix(command.CommandPath(), "testbed ")
		names[name] = true
		if has := command.Flags().Lookup("json") != nil; has == slices.Contains(withoutJSON, name) {
			t.Errorf("%s: has --json: %t", name, has)
		}
		if command.Short == "" || strings.HasSuffix(command.Short, ".") {
			t.Errorf("%s: short help %q", name, command.Short)
		}
	}
	for _, name := range withoutJSON {
		if !names[name] {
			t.Errorf("unknown command %q", name)
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

// TestDryRunOfUp prints the configuration with all defaults. Reading it again must not change it.
func TestDryRunOfUp(t *testing.T) {
	code, out, stderr := run(t, testbedHeader+"shoot: {ipFamily: ipv6}\n", "up", "--prefix", absent, "--dry-run", "-f", "-")
	if code != program.ExitFine || stderr != "" || !strings.Contains(out, "ipFamily: ipv6\n") || !strings.Contains(out, "workers: 2\n") {
		t.Errorf("exit code %d, standard output\n%s\nstandard error %q", code, out, stderr)
	}
	again, same, _ := run(t, out, "up", "--prefix", absent, "--dry-run", "-f", "-")
	if again != program.ExitFine || same != out {
		t.Errorf("the printed configuration is read as\n%s\nwant\n%s", same, out)
	}
	if code, out, _ := run(t, "", "up", "--prefix", absent, "--dry-run"); code != program.ExitFine || !strings.Contains(out, "ipFamily: ipv4\n") {
		t.Errorf("without a file: exit code %d, standard output\n%s", code, out)
	}
}

// TestDryRunOfApply: the dry run prints the Shoot, and on standard error the extensions of the
// manifest that are not installed.
func TestDryRunOfApply(t *testing.T) {
	manifest, err := os.ReadFile("../../examples/shoots/credentials.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(manifest), "  extensions:\n", "  extensions:\n  - type: shoot-dns-service\n", 1)
	code, out, stderr := run(t, text, "shoot", "apply", "--dry-run", "-f", "-")
	if code != program.ExitFine {
		t.Errorf("exit code %d", code)
	}
	golden.Compare(t, "dry-run.yaml", out)
	golden.Compare(t, "dry-run.txt", stderr)
	if strings.Contains(out+stderr, "replace-me") {
		t.Error("the password is printed")
	}
}

// TestGroups: the root help lists every command in a group.
func TestGroups(t *testing.T) {
	code, out, _ := run(t, "", "--help")
	for _, title := range []string{"Testbed:", "Shoot:", "Break:", "Look:", "Develop:"} {
		if code != program.ExitFine || !strings.Contains(out, "\n"+title+"\n  ") {
			t.Errorf("exit code %d, no commands below %q in:\n%s", code, title, out)
		}
	}
	for _, command := range newCommand(program.Streams{}).Commands() {
		if command.GroupID == "" {
			t.Errorf("%s has no group", command.Name())
		}
	}
}
