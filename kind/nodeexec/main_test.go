package nodeexec_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
)

// agentVariable is the environment variable that makes the test binary an agent.
const agentVariable = "NODEEXEC_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) == "" {
		os.Exit(m.Run())
	}
	if err := nodeexec.Serve(os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
}

// dial starts an agent in a process of its own.
func dial(t *testing.T) *nodeexec.Conn {
	t.Helper()
	conn, err := nodeexec.Dial(t.Context(), []string{os.Args[0]}, append(os.Environ(), agentVariable+"=1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// output is what a command printed.
type output struct{ stdout, stderr string }

func run(ctx context.Context, conn *nodeexec.Conn, stdin string, argv ...string) (output, error) {
	got, err := conn.Run(ctx, argv, []byte(stdin))
	return output{string(got.Stdout), string(got.Stderr)}, err
}

// runningShell is a shell that waits for its child process.
type runningShell struct {
	result chan error
	ended  chan struct{} // closed when shell and child have ended
}

// startSleep starts a shell with the child process sleep, and returns when both run. They keep the
// write end of a FIFO open, so that the test notices their end without polling.
func startSleep(ctx context.Context, t *testing.T, conn *nodeexec.Conn) runningShell {
	t.Helper()
	fifo := newFIFO(t)
	s := runningShell{make(chan error, 1), make(chan struct{})}
	go func() {
		_, err := run(ctx, conn, "", "sh", "-c", `exec 9>"$1"; sleep 600 & echo >&9; wait`, "sh", fifo)
		s.result <- err
	}()
	opened, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the command did not start: %v", err)
	}
	go func() {
		defer close(s.ended)
		defer opened.Close()
		_, _ = io.Copy(io.Discard, opened)
	}()
	return s
}
