package kind

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/snapshot"
)

// state is the folder of one testbed: kubeconfigs, certificates, and what the shoot commands have put into the garden. But for the
// latter it holds nothing that Up could not make again. Down removes it.
type state string

// exists tells whether there is the folder; one that cannot be looked at counts as there.
func (s state) exists() bool {
	_, err := os.Stat(string(s))
	return !errors.Is(err, fs.ErrNotExist)
}

func (s state) seedKubeconfig() string  { return filepath.Join(string(s), "seed.kubeconfig") }
func (s state) shootKubeconfig() string { return filepath.Join(string(s), "shoot.kubeconfig") }
func (s state) certificates() string    { return filepath.Join(string(s), "certificates") }
func (s state) garden() string          { return filepath.Join(string(s), "garden.json") }

// wantedConfiguration is what Up was told last, appliedConfiguration what it has brought about: they differ after an interruption.
func (s state) wantedConfiguration() string  { return filepath.Join(string(s), "testbed.yaml") }
func (s state) appliedConfiguration() string { return filepath.Join(string(s), "testbed-applied.yaml") }

// snapshots stands beside the folder too: what somebody has saved outlives Down.
func (s state) snapshots() snapshot.Store { return snapshot.Store(string(s) + ".snapshots") }

// buildLockTimeout is how long one testbed waits for another one that builds the same binaries.
const buildLockTimeout = 15 * time.Minute
