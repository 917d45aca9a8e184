package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// State is the folder with the state of one testbed, which Down removes. Up can recreate everything
// in it except Garden.
type State string

// Exists reports whether the folder exists. It also returns true if that cannot be determined.
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

// Garden returns the path of the garden's objects that the shoot commands store between processes.
func (s State) Garden() string { return filepath.Join(string(s), "garden.json") }

// WantedConfiguration returns the path of the configuration that Up was last called with.
func (s State) WantedConfiguration() string { return filepath.Join(string(s), "testbed.yaml") }

// AppliedConfiguration returns the path of the configuration that Up last applied completely.
func (s State) AppliedConfiguration() string { return filepath.Join(string(s), "testbed-applied.yaml") }

// Metrics returns the path of the last bundle's metrics, which the next bundle is compared with.
func (s State) Metrics() string { return filepath.Join(string(s), "metrics.json") }

// GardenletLog returns the path of the log of the Gardener components in the testbed's processes.
func (s State) GardenletLog() string { return filepath.Join(string(s), "gardenlet.log") }

// PlantedBug returns the path of the file that names the planted bug, if there is one.
func (s State) PlantedBug() string { return filepath.Join(string(s), "planted-bug") }

// Mutants returns the folder with the results of the scenarios for each planted bug.
func (s State) Mutants() string { return filepath.Join(string(s), "mutants") }

// OpenLog opens GardenletLog, and makes it the log of all Gardener components in this process:
// gardenlet's flows and its ControllerInstallation reconciler.
func (s State) OpenLog() (logr.Logger, error) {
	if err := os.MkdirAll(string(s), 0o755); err != nil {
		return logr.Discard(), fmt.Errorf("create the state of the testbed: %w", err)
	}
	file, err := os.OpenFile(s.GardenletLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return logr.Discard(), fmt.Errorf("open the log of gardenlet: %w", err)
	}
	// The file stays open until the process ends: controller-runtime keeps the first logger it gets.
	log := zap.New(zap.WriteTo(file), zap.JSONEncoder())
	ctrllog.SetLogger(log)
	return log, nil
}

// Roles of the testbed's clusters, as users name them.
const (
	RoleSeed  = "seed"
	RoleShoot = "shoot"
)

// Kubeconfig returns the path of the administrator's kubeconfig of RoleSeed or RoleShoot, or
// ErrDown.
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
