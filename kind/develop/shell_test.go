package develop

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
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
			code, err := run(t.Context(), []string{"sh", "-c", tc.script}, Streams{In: strings.NewReader(tc.in), Out: &out, Err: &stderr})
			if code != tc.code || err != nil || out.String() != tc.out || stderr.String() != tc.err {
				t.Errorf("exit code %d, error %v, output %q, standard error %q", code, err, &out, &stderr)
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	if _, err := run(t.Context(), []string{"no-such-program"}, Streams{}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("unknown program: error %v", err)
	}
	if _, err := run(t.Context(), []string{"sh", "-c", "kill -9 $$"}, Streams{}); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("killed: error %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	if _, err := run(ctx, []string{"true"}, Streams{}); !errors.Is(err, interrupted) {
		t.Errorf("context: error %v", err)
	}
}

func TestMatchNode(t *testing.T) {
	names := []string{"rc-seed-control-plane", "rc-shoot-control-plane", "rc-shoot-worker", "rc-shoot-worker2"}
	for _, tc := range []struct{ wanted, want string }{
		{"rc-shoot-worker", "rc-shoot-worker"},
		{"shoot-worker2", "rc-shoot-worker2"},
		{"worker2", "rc-shoot-worker2"},
		{"worker", "rc-shoot-worker"},
		{"control-plane", "rc-shoot-control-plane"},
		{"seed-control-plane", "rc-seed-control-plane"},
		{"worker3", ""},
		{"", ""},
		{"other-container", ""},
		{"--privileged", ""},
	} {
		t.Run(tc.wanted, func(t *testing.T) {
			got, err := matchNode(tc.wanted, names, "rc-", "rc-shoot-")
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			var unknown *UnknownNodeError
			if wantErr := tc.want == ""; wantErr != errors.As(err, &unknown) || wantErr && !strings.Contains(err.Error(), "rc-shoot-worker2") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestExecArgv(t *testing.T) {
	if got := execArgv("node", true, "bash"); !slices.Equal(got, []string{"docker", "exec", "--interactive", "--tty", "node", "bash"}) {
		t.Errorf("with a terminal: %q", got)
	}
	if got := execArgv("node", false, "bash"); slices.Contains(got, "--tty") {
		t.Errorf("docker refuses --tty without a terminal: %q", got)
	}
}
