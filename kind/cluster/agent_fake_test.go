package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
)

// TestMain runs an agent instead of the tests if CLUSTER_TEST_AGENT is set.
func TestMain(m *testing.M) {
	if os.Getenv("CLUSTER_TEST_AGENT") == "" {
		os.Exit(m.Run())
	}
	if err := nodeexec.Serve(os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
}

// nodeDocker is a fake docker with one node. It runs the node's commands on this machine, with the
// agent at a path in the test's folder, and writes its own arguments to the file "calls".
const nodeDocker = `#!/bin/bash
here=$(dirname "$0")
echo "$*" >>"$here/calls"
case $1 in
ps) cat "$here/node" ;;
inspect) echo control-plane ;;
exec)
  shift 2
  [[ $1 != -i ]] || shift
  shift
  argv=()
  for argument; do
    [[ $argument != "` + agentPath + `" ]] || argument=$here/agent
    argv+=("$argument")
  done
  exec "${argv[@]}" ;;
esac`

// fakeNode is a Node with a fake docker command.
type fakeNode struct {
	*Node
	folder string
}

func newFakeNode(t *testing.T) fakeNode {
	t.Helper()
	folder := t.TempDir()
	files := map[string]string{"docker": nodeDocker, "node": strings.ToLower(t.Name()), "calls": ""}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	c, err := find(t.Context(), "any")
	if err != nil {
		t.Fatal(err)
	}
	n := fakeNode{c.nodes[0], folder}
	t.Cleanup(func() {
		if n.agent.conn != nil {
			n.agent.conn.Close()
			<-n.agent.conn.Ended()
		}
	})
	return n
}

// program returns the content of an agent that installAgent can install.
func (n fakeNode) program(t *testing.T) []byte {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	return []byte("#!/bin/sh\nCLUSTER_TEST_AGENT=1 exec " + self + "\n")
}

func (n fakeNode) install(t *testing.T) {
	t.Helper()
	if err := n.installAgent(t.Context(), n.program(t)); err != nil {
		t.Fatal(err)
	}
}

// takeCalls returns and forgets each `docker exec`: its arguments, or "agent" for an agent's start.
func (n fakeNode) takeCalls(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(n.folder, "calls")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if after, found := strings.CutPrefix(line, "exec --privileged -i "+n.Name()+" "); found && after == agentPath {
			line = "agent"
		}
		if line == "agent" || strings.HasPrefix(line, "exec ") {
			calls = append(calls, line)
		}
	}
	return calls
}
