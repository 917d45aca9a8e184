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
	for role, own := range map[string][]string{kind.RoleSeed: nil, kind.RoleGarden: {"--namespace=garden-local"}} {
		args := []string{"get", "pods", "-A", "--", "$(a) b"}
		got := kubectlArgv("x-seed-control-plane", role, args)
		want := slices.Concat([]string{"docker", "exec", "--interactive", "--env", "KUBECONFIG=/etc/kubernetes/admin.conf",
			"x-seed-control-plane", "kubectl"}, own, args)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", role, got, want)
		}
	}
	testbed, err := kind.New(kind.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]string{"garden": "has no garden", "gardens": "want one of seed, shoot, garden"} {
		if _, err := Kubectl(t.Context(), testbed, role, nil, Streams{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cluster %s: error %v, want %q", role, err, want)
		}
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
