package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
)

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, script, in string
		code             int
		out, err         string
	}{
		{name: "output", script: "echo a; echo b >&2", out: "a\n", err: "b\n"},
		{name: "input", script: "cat", in: "x y", out: "x y"},
		{name: "exit code", script: "echo a; exit 7", code: 7, out: "a\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			code, err := Run(t.Context(), []string{"sh", "-c", tc.script}, Streams{In: strings.NewReader(tc.in), Out: &out, Err: &stderr})
			if code != tc.code || err != nil || out.String() != tc.out || stderr.String() != tc.err {
				t.Errorf("exit code %d, error %v, output %q, standard error %q", code, err, &out, &stderr)
			}
		})
	}
}

// TestRunDoesNotWaitForInput: an open pipe must not delay Run after the program has ended.
func TestRunDoesNotWaitForInput(t *testing.T) {
	open, _ := io.Pipe()
	if code, err := Run(t.Context(), []string{"true"}, Streams{In: open}); code != 0 || err != nil {
		t.Errorf("exit code %d, error %v", code, err)
	}
}

func TestRunFails(t *testing.T) {
	if _, err := Run(t.Context(), []string{"no-such-program"}, Streams{}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("unknown program: error %v", err)
	}
	if _, err := Run(t.Context(), []string{"sh", "-c", "kill -9 $$"}, Streams{}); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("killed: error %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	if _, err := Run(ctx, []string{"true"}, Streams{}); !errors.Is(err, interrupted) {
		t.Errorf("context: error %v", err)
	}
}

func TestKubectlArgv(t *testing.T) {
	got := kubectlArgv("x-seed-control-plane", []string{"get", "pods", "-A", "--", "$(a) b"})
	want := []string{"docker", "exec", "--interactive", "--env", "KUBECONFIG=/etc/kubernetes/admin.conf", "x-seed-control-plane", "kubectl",
		"get", "pods", "-A", "--", "$(a) b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	testbed, err := kind.New(kind.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Kubectl(t.Context(), testbed, "garden", nil, Streams{}); err == nil || !strings.Contains(err.Error(), "want seed or shoot") {
		t.Errorf("unknown cluster: error %v", err)
	}
}
