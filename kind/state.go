package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// State is the folder with the state of one testbed. Up can recreate all of it.
type State string

// Exists reports whether the folder exists. If that cannot be determined, it returns true.
func (s State) Exists() bool {
	_, err := os.Stat(string(s))
	return !errors.Is(err, fs.ErrNotExist)
}

// SeedKubeconfig returns the path of the seed's kubeconfig.
func (s State) SeedKubeconfig() string { return filepath.Join(string(s), "seed.kubeconfig") }

// ShootKubeconfig returns the path of the shoot's kubeconfig.
func (s State) ShootKubeconfig() string { return filepath.Join(string(s), "shoot.kubeconfig") }

// Certificates returns the folder of the testbed's CA.
func (s State) Certificates() string { return filepath.Join(string(s), "certificates") }

// Configuration returns the path of the configuration that the last Up stored.
func (s State) Configuration() string { return filepath.Join(string(s), "testbed.yaml") }

// GardenletLog returns the path of the log of the Gardener components that testbed processes run.
func (s State) GardenletLog() string { return filepath.Join(string(s), "gardenlet.log") }

// OpenLog opens GardenletLog as the log of all Gardener components in this process.
func (s State) OpenLog() (logr.Logger, error) {
	if err := os.MkdirAll(string(s), 0o755); err != nil {
		return logr.Discard(), fmt.Errorf("create the state of the testbed: %w", err)
	}
	file, err := os.OpenFile(s.GardenletLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return logr.Discard(), fmt.Errorf("open the log of gardenlet: %w", err)
	}
	// The file stays open until the process ends: controller-runtime keeps its first logger.
	log := zap.New(zap.WriteTo(file), zap.JSONEncoder())
	ctrllog.SetLogger(log)
	return log, nil
}

// Roles of the testbed's clusters, as users name them.
const (
	RoleSeed   = "seed"
	RoleShoot  = "shoot"
	RoleGarden = "garden" // Gardener's API, which the seed's API server serves
)

// Roles are the names that users may use.
var Roles = []string{RoleSeed, RoleShoot, RoleGarden}

// CheckRole returns a usage error if the testbed has no cluster with this role.
func (t *Testbed) CheckRole(role string) error {
	switch {
	case !slices.Contains(Roles, role):
		return usageError(fmt.Sprintf("cluster %q: want one of %s", role, strings.Join(Roles, ", ")))
	case role == RoleGarden && !t.Config.Garden:
		return usageError("this testbed has no garden: create one with `testbed up --garden`")
	}
	return nil
}

// usageError is a usage error (see internal/program).
type usageError string

func (e usageError) Error() string { return string(e) }
func (usageError) UsageError()     {}

// Kubeconfig returns the path of a cluster's kubeconfig. It returns the error of CheckRole, or
// ErrDown if there is no such file.
func (t *Testbed) Kubeconfig(role string) (string, error) {
	if err := t.CheckRole(role); err != nil {
		return "", err
	}
	path := t.State.SeedKubeconfig()
	if role == RoleShoot {
		path = t.State.ShootKubeconfig()
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", ErrDown
	} else if err != nil {
		return "", fmt.Errorf("kubeconfig of the %s: %w", role, err)
	}
	return path, nil
}
