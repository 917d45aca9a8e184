package gardener

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	binaryPath = "/opt/bin/gardener-node-agent"
	unitPath   = "/etc/systemd/system/gardener-node-agent.service"
)

// TestNodeAgentRepair: the record alone does not prove that a file is on the node.
func TestNodeAgentRepair(t *testing.T) {
	all := []string{unitPath, installRecord, binaryPath, "/var/lib/gardener-node-agent/config-" + Version + ".yaml", nodeAgentKubeconfig,
		"/var/lib/gardener-node-agent/machine-name"}
	for name, tc := range map[string]struct {
		damage func(*fakeNode)
		want   []string
	}{
		"none":                         {func(*fakeNode) {}, nil},
		"a file was deleted":           {func(n *fakeNode) { delete(n.files, unitPath) }, []string{unitPath, installRecord}},
		"a file was truncated":         {func(n *fakeNode) { n.files[binaryPath] = nil }, []string{installRecord, binaryPath}},
		"a file was changed":           {func(n *fakeNode) { n.changed[binaryPath] = true }, []string{installRecord, binaryPath}},
		"the record was deleted":       {func(n *fakeNode) { delete(n.files, installRecord) }, all},
		"an older binary was recorded": {recordOlderBinary, []string{installRecord, binaryPath}},
	} {
		t.Run(name, func(t *testing.T) {
			node := newFakeNode()
			node.active = true
			install := func() {
				t.Helper()
				clear(node.modes)
				if err := agent.Install(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
			install()
			tc.damage(node)
			install()
			if got := slices.Sorted(maps.Keys(node.modes)); !slices.Equal(got, tc.want) {
				t.Errorf("wrote %q, want %q", got, tc.want)
			}
			if install(); len(node.modes) > 0 {
				t.Errorf("the next installation wrote %v", node.modes)
			}
		})
	}
}

func recordOlderBinary(n *fakeNode) {
	older := NewBinary([]byte("b binary")) // of the same size
	n.files[installRecord] = []byte(strings.ReplaceAll(string(n.files[installRecord]), agent.Binary.sum, older.sum))
}

// brokenNode is a node on which every restart of the unit fails.
type brokenNode struct{ *fakeNode }

func (n brokenNode) Exec(ctx context.Context, argv ...string) (string, error) {
	if slices.Contains(argv, "restart") {
		return "", errors.New("the engine is gone")
	}
	return n.fakeNode.Exec(ctx, argv...)
}

// TestNodeAgentInterrupted: if the restart of the unit fails, the written files are not recorded.
// Otherwise the second installation would not restart the unit.
func TestNodeAgentInterrupted(t *testing.T) {
	node := newFakeNode()
	node.active = true
	if err := agent.Install(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	changed := agent
	changed.SecretName = "another"
	if err := changed.Install(t.Context(), brokenNode{node}); err == nil {
		t.Fatal("the restart failed without an error")
	}
	for _, next := range []NodeAgent{agent, changed} {
		node.commands = nil
		if err := next.Install(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(node.commands, "systemctl restart gardener-node-agent.service") {
			t.Errorf("with secret %s ran %q, want a restart", next.SecretName, node.commands)
		}
	}
}

// TestReadScript runs the script in a real shell with a fake systemctl.
func TestReadScript(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	read := func(record string, paths ...string) string {
		t.Helper()
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		argv := append([]string{"-c", readScript, "sh", "a.service", record}, paths...)
		got, err := exec.CommandContext(t.Context(), "sh", argv...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	const active = "[ $1 = is-enabled ] || echo active"
	present, missing := write("a file", "content"), filepath.Join(dir, "missing")
	record := write("record", "sum  path\n")
	unchanged := "sum  path\n7  " + present + "\n"
	for name, tc := range map[string]struct{ systemctl, record, want string }{
		"active":    {active, record, unchanged + "active\n"},
		"inactive":  {"[ $1 = is-enabled ] || { echo inactive; exit 3; }", record, unchanged + "inactive\n"},
		"disabled":  {"exit 1", record, unchanged},
		"no record": {active, missing, "active\n"},
	} {
		t.Run(name, func(t *testing.T) {
			write("systemctl", "#!/bin/sh\n"+tc.systemctl+"\n")
			if got := read(tc.record, missing, present); got != tc.want {
				t.Errorf("printed %q, want %q", got, tc.want)
			}
		})
	}
	changeAfter(t, record, present)
	if got := read(record, present); strings.Contains(got, present) {
		t.Errorf("the file was changed after the record, but the script printed %q", got)
	}
}

// changeAfter changes the file at path after the record has been written, and then restores the old
// modification time, as tar does when it unpacks.
func changeAfter(t *testing.T, record, path string) {
	t.Helper()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "find", path, "-newercc", record).Output()
		if err != nil {
			t.Fatal(err)
		}
		if len(out) > 0 { // the clock of the file system has advanced
			return
		}
	}
}

func TestRecord(t *testing.T) {
	files := []nodeFile{textFile("/a", 0o600, "content"), {"/b", 0o755, NewBinary(nil)}}
	const want = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73  /a\n" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  /b\n"
	if got := string(recordOf(files).content.data); got != want {
		t.Errorf("record %q, want %q", got, want)
	}
}
