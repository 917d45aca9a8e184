package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Roles of the testbed's clusters, as people name them.
const (
	RoleSeed  = "seed"
	RoleShoot = "shoot"
)

// Kubeconfig returns the path of the kubeconfig of the cluster with that role, which has the rights of an administrator. Without
// a testbed it is an ErrDown.
func (t *Testbed) Kubeconfig(role string) (string, error) {
	var path string
	switch role {
	case RoleSeed:
		path = t.State.SeedKubeconfig()
	case RoleShoot:
		path = t.State.ShootKubeconfig()
	default:
		return "", fmt.Errorf("cluster %q: want %s or %s", role, RoleSeed, RoleShoot)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", ErrDown
	} else if err != nil {
		return "", fmt.Errorf("kubeconfig of the %s: %w", role, err)
	}
	return path, nil
}
