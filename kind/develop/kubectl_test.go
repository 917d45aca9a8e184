package develop

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
)

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
