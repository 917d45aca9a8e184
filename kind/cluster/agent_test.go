package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
)

func TestOneAgentRunsAllCommands(t *testing.T) {
	n := newFakeNode(t)
	n.install(t)
	n.takeCalls(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if out, err := n.Exec(t.Context(), "echo", "out"); err != nil || out != "out\n" {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
	group.Wait()
	c, err := find(t.Context(), "any") // as another part of this process does
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.nodes[0].Script(t.Context(), `echo "$1"`, "a b"); err != nil || out != "a b\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if got := n.takeCalls(t); !slices.Equal(got, []string{"agent"}) {
		t.Errorf("docker exec ran %q", got)
	}
}

// TestAgentIsLikeDocker compares results and errors of commands with those of `docker exec`.
func TestAgentIsLikeDocker(t *testing.T) {
	n := newFakeNode(t)
	n.install(t)
	docker := &Node{kind: n.kind, cluster: n.cluster}
	for _, tc := range []struct {
		name, stdin, script string
		code                int
	}{
		{name: "success", script: "echo out; echo err >&2"},
		{name: "input", stdin: "in", script: "cat"},
		{name: "failure", script: "echo out; exit 3", code: 3},
		{name: "failure with input", stdin: "in", script: "cat >&2; exit 4", code: 4},
		{name: "missing file", script: "LC_ALL=C cat /no/such/file", code: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			argv := []string{"sh", "-c", tc.script}
			var stdin []byte
			if tc.stdin != "" {
				stdin = []byte(tc.stdin)
			}
			wantOut, wantErr := docker.run(t.Context(), stdin, argv...)
			n.takeCalls(t)
			out, err := n.run(t.Context(), stdin, argv...)
			if calls := n.takeCalls(t); slices.ContainsFunc(calls, func(call string) bool { return call != "agent" }) {
				t.Errorf("docker exec ran %q", calls)
			}
			if out != wantOut {
				t.Errorf("got %q, want %q", out, wantOut)
			}
			if (err != nil || tc.code != 0) && !strings.Contains(err.Error(), fmt.Sprintf("exit status %d", tc.code)) {
				t.Errorf("error %v, want exit code %d", err, tc.code)
			}
			sameFailure(t, err, wantErr)
		})
	}
}

// sameFailure compares what callers can see of the errors of two commands.
func sameFailure(t *testing.T, got, want error) {
	t.Helper()
	if got == nil && want == nil {
		return
	}
	var gotRun, wantRun *kindexec.RunError
	if !errors.As(got, &gotRun) || !errors.As(want, &wantRun) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if !slices.Equal(gotRun.Command, wantRun.Command) {
		t.Errorf("command %q, want %q", gotRun.Command, wantRun.Command)
	}
	if string(gotRun.Output) != string(wantRun.Output) {
		t.Errorf("output %q, want %q", gotRun.Output, wantRun.Output)
	}
	if got.Error() != want.Error() {
		t.Errorf("error %v, want %v", got, want)
	}
}

func TestCanceledCommand(t *testing.T) {
	n := newFakeNode(t)
	n.install(t)
	if _, err := n.Exec(t.Context(), "true"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupt signal received")
	cancel(interrupted)
	_, err := n.Exec(ctx, "sleep", "600")
	var failed *command.Error
	if !errors.As(err, &failed) || !errors.Is(err, interrupted) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWithoutAgent: docker exec runs the commands until the agent is installed.
func TestWithoutAgent(t *testing.T) {
	n := newFakeNode(t)
	for range 2 {
		if out, err := n.Exec(t.Context(), "echo", "out"); err != nil || out != "out\n" {
			t.Errorf("got %q, %v", out, err)
		}
	}
	echo := "exec --privileged " + n.Name() + " echo out"
	if got := n.takeCalls(t); !slices.Equal(got, []string{"agent", echo, "agent", echo}) {
		t.Errorf("docker exec ran %q", got)
	}
	n.install(t)
	n.takeCalls(t)
	if out, err := n.Exec(t.Context(), "echo", "out"); err != nil || out != "out\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if got := n.takeCalls(t); !slices.Equal(got, []string{"agent"}) {
		t.Errorf("docker exec ran %q", got)
	}
}

// TestAgentEnds: the command that the agent ran is not repeated. The next one starts another agent.
func TestAgentEnds(t *testing.T) {
	n := newFakeNode(t)
	n.install(t)
	runs := filepath.Join(n.folder, "runs")
	const endAgent = `echo run >>"$1"; kill -KILL $PPID; read -r forever`
	_, err := n.Script(t.Context(), endAgent, runs)
	var failed *command.Error
	if !errors.As(err, &failed) || !errors.Is(err, nodeexec.ErrBroken) {
		t.Errorf("got %v", err)
	}
	if content, err := os.ReadFile(runs); err != nil || string(content) != "run\n" {
		t.Errorf("the command ran %q, %v; want once", content, err)
	}
	<-n.agent.conn.Ended()
	n.takeCalls(t)
	if out, err := n.Exec(t.Context(), "echo", "out"); err != nil || out != "out\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if got := n.takeCalls(t); !slices.Equal(got, []string{"agent"}) {
		t.Errorf("docker exec ran %q", got)
	}
}

// TestInstallAgent: an unchanged program is not written again.
func TestInstallAgent(t *testing.T) {
	n := newFakeNode(t)
	n.Node = &Node{kind: n.kind, cluster: n.cluster} // no agent, since the fake replaces the path only in docker commands
	for _, tc := range []struct {
		name, content string
		calls         int
	}{{"new", "one", 2}, {"same", "one", 1}, {"changed", "two", 2}} {
		if err := n.installAgent(t.Context(), []byte(tc.content)); err != nil {
			t.Fatal(err)
		}
		if got := n.takeCalls(t); len(got) != tc.calls {
			t.Errorf("%s: docker exec ran %q", tc.name, got)
		}
	}
	path := filepath.Join(n.folder, "agent")
	content, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(content) != "two" || info.Mode().Perm() != 0o755 {
		t.Errorf("the file is %q, %v, %v", content, err, statErr)
	}
}

func TestReadFileByAgent(t *testing.T) {
	n := newFakeNode(t)
	n.install(t)
	if _, err := n.ReadFile(t.Context(), "/no/such/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	path := filepath.Join(t.TempDir(), "new", "file")
	if err := n.WriteFile(t.Context(), path, 0o600, []byte("content")); err != nil {
		t.Fatal(err)
	}
	if got, err := n.ReadFile(t.Context(), path); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}
