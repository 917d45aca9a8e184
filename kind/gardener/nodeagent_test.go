package gardener

import (
	"context"
	"crypto/sha256"
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
	Binary: []byte("a binary"), Kubeconfig: []byte(kubeconfig), SecretName: "gardener-node-agent-local-0123", KubernetesVersion: "v1.36.2",
}

// fakeNode stores files and answers the script that reads checksums. It records all other commands.
type fakeNode struct {
	active   bool
	files    map[string][]byte
	modes    map[string]fs.FileMode
	commands []string
}

func newFakeNode() *fakeNode {
	return &fakeNode{files: map[string][]byte{}, modes: map[string]fs.FileMode{}}
}

func (n *fakeNode) Name() string { return "shoot-worker" }

func (n *fakeNode) Exec(_ context.Context, argv ...string) (string, error) {
	if argv[0] != "sh" {
		n.commands = append(n.commands, strings.Join(argv, " "))
		return "", nil
	}
	var sums strings.Builder
	for _, path := range argv[5:] {
		if data, ok := n.files[path]; ok {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), path)
		}
	}
	if n.active {
		sums.WriteString("active\n")
	}
	return sums.String(), nil
}

func (n *fakeNode) WriteFile(_ context.Context, path string, mode fs.FileMode, data []byte) error {
	n.files[path], n.modes[path] = data, mode
	return nil
}

func TestNodeAgentConfig(t *testing.T) {
	config, err := agent.config()
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "nodeagent-config.yaml", config)
}
