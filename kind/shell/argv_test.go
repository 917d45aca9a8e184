package shell

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
)

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
			var unknown *UnknownNode
			if wantErr := tc.want == ""; wantErr != errors.As(err, &unknown) || wantErr && !strings.Contains(err.Error(), "rc-shoot-worker2") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestShellArgv(t *testing.T) {
	if got := shellArgv("node", true); !slices.Equal(got, []string{"docker", "exec", "--interactive", "--tty", "node", "bash"}) {
		t.Errorf("with a terminal: %q", got)
	}
	if got := shellArgv("node", false); slices.Contains(got, "--tty") {
		t.Errorf("docker refuses --tty without a terminal: %q", got)
	}
}

func TestKubeconfig(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir(), Prefix: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testbed.Kubeconfig("garden"); err == nil || errors.Is(err, kind.ErrDown) {
		t.Errorf("error %v", err)
	}
	if _, err := testbed.Kubeconfig(kind.RoleSeed); !errors.Is(err, kind.ErrDown) {
		t.Errorf("error %v, want ErrDown", err)
	}
	want := filepath.Join(string(testbed.State), "shoot.kubeconfig")
	if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(want, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := testbed.Kubeconfig(kind.RoleShoot); err != nil || got != want {
		t.Errorf("path %q, error %v", got, err)
	}
}
