package develop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// TestDebugServer runs debugServer with a shell instead of Delve, and checks that the end of
// standard input stops it. In the second case the server ends before the script starts another job:
// there `wait -n` hung.
func TestDebugServer(t *testing.T) {
	const gone = `trap 'while [ -n "${server:-}" ] && kill -0 "$server" 2>/dev/null; do :; done' DEBUG`
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(slow, []byte(gone), 0o600); err != nil {
		t.Fatal(err)
	}
	const delve = `sleep 60 >/dev/null & trap 'echo let go; kill $!; exit 5' TERM; echo "$@"; wait`
	for _, tc := range []struct {
		name, delve string
		ends        bool // whether standard input ends
		want        string
		code        int
	}{
		{"nobody listens any more", delve, true, "a 'b\nlet go\n", 5},
		{"it ends by itself", `echo "$@"; exit 7`, false, "a 'b\n", 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, end := io.Pipe()
			defer end.Close()
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "bash", "-uc", debugServer, "bash", "bash", "-c", tc.delve, "bash", "a", "'b")
			cmd.WaitDelay = time.Minute
			cmd.Stdout = &listener{log: &out, ready: func() { t.Error("ready before it listens") }}
			if err := Feed(cmd, in); err != nil {
				t.Fatal(err)
			}
			if tc.ends {
				listening := &listener{log: &out}
				cmd.Stdout = writerFunc(func(text []byte) (int, error) { // the fake sets its trap before it prints the first line
					_ = end.Close()
					return listening.Write(text)
				})
			} else {
				cmd.Env = append(os.Environ(), "BASH_ENV="+slow)
			}
			err := cmd.Run()
			var failed *exec.ExitError
			if !errors.As(err, &failed) || failed.ExitCode() != tc.code || out.String() != tc.want {
				t.Errorf("error %v, output %q; want exit code %d, %q", err, &out, tc.code, tc.want)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(text []byte) (int, error) { return w(text) }

// TestListener: the line by which Delve says that it listens may arrive in parts. Only the first
// such line counts.
func TestListener(t *testing.T) {
	ready := 0
	var out bytes.Buffer
	l := &listener{log: &out, ready: func() { ready++ }}
	text := []string{"API server lis", "tening at: 172.18.0.2:4000\n", "API server listening at: again\n"}
	for i, part := range text {
		if _, err := l.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		if want := min(i, 1); ready != want {
			t.Errorf("after part %d ready was called %d times, want %d", i, ready, want)
		}
	}
	if out.String() != strings.Join(text, "") {
		t.Errorf("passed on: %q", &out)
	}
}

func TestDebugArguments(t *testing.T) {
	target := DebugTarget{Node: "x-shoot-worker", Process: 42, Address: "172.18.0.5:4001"}
	argv := target.serve()
	for _, want := range []string{"x-shoot-worker", debuggerOnNode, "42", "--listen=172.18.0.5:4001", "--continue"} {
		if !slices.Contains(argv, want) {
			t.Errorf("no %q in %q", want, argv)
		}
	}
	if _, err := FindTarget(t.Context(), new(kind.Testbed), spec.Target{Role: spec.Node, Name: "worker"}, 1); !errors.As(err, new(*NotDebuggableError)) {
		t.Errorf("a node: error %v", err)
	}
	missing := &kind.Testbed{Root: t.TempDir()}
	if err := Debug(t.Context(), missing, &target, "bin/dlv", io.Discard, nil); err == nil || !strings.Contains(err.Error(), "bin/dlv") {
		t.Errorf("no debugger: error %v", err)
	}
}
