package gardener

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: shoot, cluster: {server: "https://shoot-control-plane:6443"}}]
users: [{name: admin, user: {token: secret}}]
contexts: [{name: shoot, context: {cluster: shoot, user: admin}}]
current-context: shoot
`

var agent = NodeAgent{
	Binary: NewBinary([]byte("a binary")), Kubeconfig: []byte(kubeconfig), SecretName: "gardener-node-agent-local-0123", KubernetesVersion: "v1.36.4",
}

// fakeNode stores files and answers readScript. It records all other commands.
type fakeNode struct {
	active   bool
	files    map[string][]byte
	modes    map[string]fs.FileMode
	commands []string
	// changed contains the files that were written after the record.
	changed map[string]bool
}

func newFakeNode() *fakeNode {
	return &fakeNode{files: map[string][]byte{}, modes: map[string]fs.FileMode{}, changed: map[string]bool{}}
}

func (n *fakeNode) Name() string { return "shoot-worker" }

func (n *fakeNode) Exec(_ context.Context, argv ...string) (string, error) {
	if argv[0] != "sh" {
		n.commands = append(n.commands, strings.Join(argv, " "))
		return "", nil
	}
	var out strings.Builder
	if record, ok := n.files[argv[5]]; ok {
		out.Write(record)
		for _, path := range argv[6:] {
			if data, ok := n.files[path]; ok && !n.changed[path] {
				fmt.Fprintf(&out, "%d  %s\n", len(data), path)
			}
		}
	}
	if n.active {
		out.WriteString("active\n")
	}
	return out.String(), nil
}

func (n *fakeNode) WriteFile(_ context.Context, path string, mode fs.FileMode, data []byte) error {
	n.files[path], n.modes[path] = data, mode
	if n.changed[path] = true; path == installRecord {
		clear(n.changed)
	}
	return nil
}

func TestNodeAgentConfig(t *testing.T) {
	config, err := agent.config()
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "nodeagent-config.yaml", config)
}
