package kind

import (
	"fmt"
	"os"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// openLog opens the file that takes what Gardener's components log while they run in this process: gardenlet's flow and
// its ControllerInstallation reconciler. It is for a person who looks for the cause of a failure, and goes into a bundle of diagnostics.
func (s State) OpenLog() (logr.Logger, error) {
	if err := os.MkdirAll(string(s), 0o755); err != nil {
		return logr.Discard(), fmt.Errorf("create the state of the testbed: %w", err)
	}
	file, err := os.OpenFile(s.GardenletLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return logr.Discard(), fmt.Errorf("open the log of gardenlet: %w", err)
	}
	// The file stays open for the life of the process: controller-runtime keeps the first logger that it is given.
	log := zap.New(zap.WriteTo(file), zap.JSONEncoder())
	ctrllog.SetLogger(log)
	return log, nil
}
