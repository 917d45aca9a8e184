package gardener

import (
	"io/fs"
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
	if len(node.modes) != 2 || node.modes[installRecord] == 0 {
		t.Errorf("a new secret name wrote %v, want the configuration and the record only", node.modes)
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
