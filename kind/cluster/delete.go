package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	deleteTimeout = 2 * time.Minute
	// orphanTimeout is longer than `docker run` takes to start a node.
	orphanTimeout = 30 * time.Second
)

// Delete removes the cluster's containers, in whatever state, and their volumes. It does not touch
// kubeconfig files, and succeeds if there is nothing to remove.
func Delete(ctx context.Context, name string) error {
	ctx, cancel := progress.Within(ctx, deleteTimeout, "not done")
	defer cancel()

	awaitOrphans(ctx, name)
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		found, err := containers(ctx, name)
		if err != nil {
			return false, err
		}
		if len(found) == 0 {
			return true, nil
		}
		argv := []string{"docker", "rm", "--force", "--volumes"}
		for _, c := range found {
			thaw(freezer, c.id)
			argv = append(argv, c.name)
		}
		// The engine sometimes needs a second call for a container that it is stopping or restarting.
		_, last = command.Output(ctx, argv...)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("deleting cluster %s: %w", name, errors.Join(err, last))
	}
	return nil
}

// awaitOrphans waits until no `docker run` for the cluster is left from a killed process: its
// container appears only after the process is gone.
func awaitOrphans(ctx context.Context, name string) {
	_ = wait.PollUntilContextTimeout(ctx, pollInterval, orphanTimeout, true, func(context.Context) (bool, error) {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err == nil && runsNodeOf(string(data), name) {
				return false, nil
			}
		}
		return true, nil
	})
}

// runsNodeOf reports whether a /proc/PID/cmdline is a `docker run` for a node of the cluster.
func runsNodeOf(cmdline, name string) bool {
	argv := strings.Split(cmdline, "\x00")
	return len(argv) > 2 && filepath.Base(argv[0]) == "docker" && argv[1] == "run" &&
		strings.Contains(cmdline, "\x00"+clusterLabel+"="+name+"\x00")
}
