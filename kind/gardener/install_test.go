package gardener

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNodeAgentInstall(t *testing.T) {
	restarted := []string{"systemctl daemon-reload", "systemctl enable gardener-node-agent.service", "systemctl restart gardener-node-agent.service"}
	started := []string{"systemctl enable --now gardener-node-agent.service"}

	node := newFakeNode()
	install := func(agent NodeAgent, want []string) {
		t.Helper()
		node.commands = nil
		if err := agent.Install(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(node.commands, want) {
			t.Errorf("ran %q, want %q", node.commands, want)
		}
	}
	install(agent, restarted)
	for path, mode := range map[string]fs.FileMode{
		"/opt/bin/gardener-node-agent":                             0o755,
		"/var/lib/gardener-node-agent/machine-name":                0o600,
		"/var/lib/gardener-node-agent/config-" + Version + ".yaml": 0o600,
		nodeAgentKubeconfig:                                        0o600,
		"/etc/systemd/system/gardener-node-agent.service":          0o644,
	} {
		if got, ok := node.modes[path]; !ok || got != mode {
			t.Errorf("%s: written %v with mode %v, want mode %v", path, ok, got, mode)
		}
	}
	if got := string(node.files["/var/lib/gardener-node-agent/machine-name"]); got != "shoot-worker" {
		t.Errorf("the machine is called %q", got)
	}

	clear(node.modes)
	install(agent, started)
	node.active = true
	install(agent, nil)
	if len(node.modes) > 0 {
		t.Errorf("the second installation wrote %v", node.modes)
	}

	changed := agent
	changed.SecretName = "another"
	install(changed, restarted)
	if len(node.modes) != 1 {
		t.Errorf("a new secret name wrote %v, want the configuration only", node.modes)
	}
}

func TestNodeAgentBadInput(t *testing.T) {
	for name, change := range map[string]func(*NodeAgent){
		"Kubernetes version": func(a *NodeAgent) { a.KubernetesVersion = "latest" },
		"kubeconfig":         func(a *NodeAgent) { a.Kubeconfig = []byte("{") },
	} {
		t.Run(name, func(t *testing.T) {
			bad := agent
			change(&bad)
			node := newFakeNode()
			err := bad.Install(t.Context(), node)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v does not name the %s", err, name)
			}
			if len(node.files) > 0 {
				t.Error("the node was changed")
			}
		})
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
	present := write("a file", "content")
	sum := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte("content")), present)
	for name, test := range map[string]struct{ systemctl, want string }{
		"active":   {"[ $1 = is-enabled ] || echo active", sum + "active\n"},
		"inactive": {"[ $1 = is-enabled ] || { echo inactive; exit 3; }", sum + "inactive\n"},
		"disabled": {"exit 1", sum},
	} {
		t.Run(name, func(t *testing.T) {
			write("systemctl", "#!/bin/sh\n"+test.systemctl+"\n")
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			got, err := exec.CommandContext(t.Context(), "sh", "-c", readScript, "sh", "a.service", present, filepath.Join(dir, "missing")).Output()
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("printed %q, want %q", got, test.want)
			}
		})
	}
}
