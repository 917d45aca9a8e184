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

// metrics is where the metrics of the last bundle are kept, for the next one to compare with.
func (s state) metrics() string { return filepath.Join(string(s), "metrics.json") }

// gardenletLog is what gardenlet's components log in the processes that use the testbed.
func (s state) gardenletLog() string { return filepath.Join(string(s), "gardenlet.log") }

// plantedBug names the bug that the extension of the testbed was built with; it is not there if there is none.
func (s state) plantedBug() string { return filepath.Join(string(s), "planted-bug") }

// mutants has what the scenarios showed for each planted bug.
func (s state) mutants() string { return filepath.Join(string(s), "mutants") }

// buildLockTimeout is how long one testbed waits for another one that builds the same binaries.
const buildLockTimeout = 15 * time.Minute
