package nodeexec_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/nodeexec"
)

func newFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun(t *testing.T) {
	t.Parallel()
	conn := dial(t)
	large := strings.Repeat("0123456789abcdef", 1<<18) // larger than a pipe
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		stdin string
		argv  []string
		want  output
		code  int
	}{
		{name: "both outputs", argv: []string{"sh", "-c", "echo out; echo err >&2"}, want: output{"out\n", "err\n"}},
		{name: "exit code", argv: []string{"sh", "-c", "echo out; exit 3"}, want: output{"out\n", ""}, code: 3},
		{name: "signal", argv: []string{"sh", "-c", "kill -KILL $$"}, code: 137},
		{name: "arguments", argv: []string{"printf", "<%s>", "a b", "", "'$x\n", "\xff"}, want: output{"<a b><><'$x\n><\xff>", ""}},
		{name: "empty last argument", argv: []string{"printf", "<%s>", ""}, want: output{"<>", ""}},
		{name: "no input", argv: []string{"cat"}},
		{name: "input", stdin: "in", argv: []string{"cat"}, want: output{"in", ""}},
		{name: "large input", stdin: large, argv: []string{"cat"}, want: output{large, ""}},
		{name: "input not read", stdin: large, argv: []string{"echo", "out"}, want: output{"out\n", ""}},
		{name: "no such program", argv: []string{"no-such-program"}, code: 127,
			want: output{"", "exec: \"no-such-program\": executable file not found in $PATH\n"}},
		{name: "no such file", argv: []string{"/no/such/program"}, code: 127,
			want: output{"", "fork/exec /no/such/program: no such file or directory\n"}},
		{name: "not executable", argv: []string{script}, code: 126, want: output{"", "fork/exec " + script + ": permission denied\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t.Context(), conn, tc.stdin, tc.argv...)
			if got != tc.want {
				t.Errorf("got %.200q, want %.200q", got, tc.want)
			}
			if (err != nil || tc.code != 0) && fmt.Sprint(err) != fmt.Sprintf("exit status %d", tc.code) {
				t.Errorf("error %v, want exit code %d", err, tc.code)
			}
		})
	}
}

func TestManyCommandsAtOnce(t *testing.T) {
	conn := dial(t)
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			want := fmt.Sprint(i)
			got, err := run(t.Context(), conn, want, "cat")
			if err != nil || got.stdout != want {
				t.Errorf("%d: got %q, %v", i, got, err)
			}
		})
	}
	group.Wait()
}

func TestEndOfContextKillsTheProcessGroup(t *testing.T) {
	conn := dial(t)
	ctx, cancel := context.WithCancel(t.Context())
	sleeping := startSleep(ctx, t, conn)
	cancel()
	if err := <-sleeping.result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-sleeping.ended
	if got, err := run(t.Context(), conn, "", "echo", "next"); err != nil || got.stdout != "next\n" {
		t.Errorf("the next command: %q, %v", got, err)
	}
}

func TestEndOfConnection(t *testing.T) {
	conn := dial(t)
	sleeping := startSleep(t.Context(), t, conn)
	conn.Close()
	if err := <-sleeping.result; !errors.Is(err, nodeexec.ErrBroken) {
		t.Errorf("the running command: %v", err)
	}
	<-sleeping.ended
	<-conn.Ended()
	if _, err := run(t.Context(), conn, "", "echo"); !errors.Is(err, nodeexec.ErrNotRun) {
		t.Errorf("the next command: %v", err)
	}
}

// TestEndOfAgent: a killed agent breaks the connection.
func TestEndOfAgent(t *testing.T) {
	conn := dial(t)
	_, err := run(t.Context(), conn, "", "sh", "-c", "kill -KILL $PPID; read -r forever")
	if !errors.Is(err, nodeexec.ErrBroken) {
		t.Errorf("the running command: %v", err)
	}
	<-conn.Ended()
	if _, err := run(t.Context(), conn, "", "echo"); !errors.Is(err, nodeexec.ErrNotRun) {
		t.Errorf("the next command: %v", err)
	}
}

func TestDialFails(t *testing.T) {
	for name, argv := range map[string][]string{
		"no program":     {"/no/such/program"},
		"it ends":        {"sh", "-c", "echo no agent >&2; exit 127"},
		"it is no agent": {"echo", "hello"},
		"an endless one": {"yes", "OCI runtime exec failed: no such program"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := nodeexec.Dial(t.Context(), argv, os.Environ())
			if err == nil {
				conn.Close()
				t.Fatal("connected")
			}
			if name == "it ends" && !strings.Contains(err.Error(), "no agent") {
				t.Errorf("error %v without standard error", err)
			}
		})
	}
}

func TestDialEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fifo := newFIFO(t)
	failed := make(chan error, 1)
	go func() {
		_, err := nodeexec.Dial(ctx, []string{"sh", "-c", `echo >"$1"; exec sleep 600`, "sh", fifo}, os.Environ())
		failed <- err
	}()
	if _, err := os.ReadFile(fifo); err != nil { // the command has started
		t.Fatal(err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
