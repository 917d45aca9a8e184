package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// State is the folder with the state of one testbed. Up can recreate all of it except Garden.
type State string

// Exists reports whether the folder exists. Exists also returns true if that is unknown.
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

// Garden returns the path of the file in which shoot commands store the garden's objects.
func (s State) Garden() string { return filepath.Join(string(s), "garden.json") }

// Configuration returns the path of the configuration that Up was last called with.
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

// Kubeconfig returns the path of a cluster's kubeconfig, or ErrDown if there is no such file.
func (t *Testbed) Kubeconfig(role string) (string, error) {
	path, found := map[string]string{RoleSeed: t.State.SeedKubeconfig(), RoleShoot: t.State.ShootKubeconfig()}[role]
	if !found {
		return "", fmt.Errorf("cluster %q: want %s or %s", role, RoleSeed, RoleShoot)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", ErrDown
	} else if err != nil {
		return "", fmt.Errorf("kubeconfig of the %s: %w", role, err)
	}
	return path, nil
}

// OtherCheckoutError reports that a testbed with this prefix belongs to another directory of this
// machine. Its nodes trust the CA in that directory. It is an environment error.
type OtherCheckoutError struct {
	environmentError
	Prefix string // of the testbed
	State  State  // the folder that the testbed was created for
}

func (e *OtherCheckoutError) Error() string {
	return fmt.Sprintf("testbed %s belongs to %s: use it there, remove it there with `testbed down` or here with "+
		"`make e2e REPLACE=1`, or use another testbed with --prefix NAME", e.Prefix, e.State.Directory())
}

// CheckOwner returns an *OtherCheckoutError if the testbed belongs to another state folder that
// still exists. The folder alone proves nothing: Docker recreates a mounted folder when it restarts
// a container. The engine must run.
func (t *Testbed) CheckOwner(ctx context.Context) error {
	other, err := t.CreatedElsewhere(ctx)
	if err != nil || other == "" {
		return err
	}
	if _, err := os.Stat(other.SeedKubeconfig()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &OtherCheckoutError{Prefix: t.Prefix, State: other}
}

// CreatedElsewhere returns the state folder that the containers were created for. It returns "" if
// that is the folder of this testbed, or unknown. The engine must run.
func (t *Testbed) CreatedElsewhere(ctx context.Context) (State, error) {
	created, err := cluster.KubeconfigFolder(ctx, t.SeedName())
	if filepath.Clean(created) == filepath.Clean(string(t.State)) || sameFolder(created, string(t.State)) {
		return "", err
	}
	return State(created), err
}

// sameFolder reports whether two paths lead to one folder, for example through a symbolic link.
func sameFolder(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// Directory returns the checkout that contains the state folder in DefaultDirectory, or the state
// folder itself if it is elsewhere.
func (s State) Directory() string {
	if parent := filepath.Dir(string(s)); filepath.Base(parent) == DefaultDirectory {
		return filepath.Dir(parent)
	}
	return string(s)
}
