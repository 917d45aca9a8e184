package kind

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// state is the folder of one testbed: kubeconfigs, certificates, and what the shoot commands have put into the garden. But for the
// latter it holds nothing that Up could not make again. Down removes it.
type State string

// exists tells whether there is the folder; one that cannot be looked at counts as there.
func (s State) Exists() bool {
	_, err := os.Stat(string(s))
	return !errors.Is(err, fs.ErrNotExist)
}

func (s State) SeedKubeconfig() string { return filepath.Join(string(s), "seed.kubeconfig") }

func (s State) ShootKubeconfig() string { return filepath.Join(string(s), "shoot.kubeconfig") }

func (s State) Certificates() string { return filepath.Join(string(s), "certificates") }

func (s State) Garden() string { return filepath.Join(string(s), "garden.json") }

// wantedConfiguration is what Up was told last, appliedConfiguration what it has brought about: they differ after an interruption.
func (s State) WantedConfiguration() string { return filepath.Join(string(s), "testbed.yaml") }

func (s State) AppliedConfiguration() string { return filepath.Join(string(s), "testbed-applied.yaml") }

// metrics is where the metrics of the last bundle are kept, for the next one to compare with.
func (s State) Metrics() string { return filepath.Join(string(s), "metrics.json") }

// gardenletLog is what gardenlet's components log in the processes that use the testbed.
func (s State) GardenletLog() string { return filepath.Join(string(s), "gardenlet.log") }

// plantedBug names the bug that the extension of the testbed was built with; it is not there if there is none.
func (s State) plantedBug() string { return filepath.Join(string(s), "planted-bug") }

// mutants has what the scenarios showed for each planted bug.
func (s State) Mutants() string { return filepath.Join(string(s), "mutants") }

// buildLockTimeout is how long one testbed waits for another one that builds the same binaries.
const BuildLockTimeout = 15 * time.Minute
