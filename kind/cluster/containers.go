package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// clusterLabel is the label that kind sets on each container of a cluster.
const clusterLabel = "io.x-k8s.kind.cluster"

// absent is the reason to create a cluster that has no container.
const absent = "it does not exist"

// container is a container in the output of `docker ps`.
type container struct {
	name, state, id string
}

// inspect returns why the cluster must be built: it is absent, incomplete, stopped, restarted or
// configured differently, or a node cannot be read. The reason is empty if the cluster can be kept.
func inspect(ctx context.Context, config Config) (reason string, err error) {
	found, err := containers(ctx, config.Name)
	if err != nil {
		return "", err
	}
	names := nodeNames(config)
	if reason := assess(found, names); reason != "" {
		return reason, nil
	}
	c, err := find(ctx, config.Name)
	if err != nil {
		return "", err
	}
	for _, n := range c.nodes {
		marker, err := n.ReadFile(ctx, createdMarker)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return n.Name() + " was restarted, or its creation was interrupted", nil
		case err != nil && ctx.Err() == nil:
			return command.Tail(err.Error(), 1), nil
		case err != nil:
			return "", err
		case string(marker) != fingerprint(config):
			return "its configuration has changed", nil
		}
	}
	return "", nil
}

func assess(found []container, names []string) (reason string) {
	if len(found) == 0 {
		return absent
	}
	for _, name := range names {
		i := slices.IndexFunc(found, func(c container) bool { return c.name == name })
		if i < 0 {
			return name + " is missing"
		}
		if state := found[i].state; state != "running" {
			return name + " is " + state
		}
	}
	if len(found) != len(names) {
		return fmt.Sprintf("it has %d nodes instead of %d", len(found), len(names))
	}
	return ""
}

// StoppedNodes returns a cluster's containers that do not run, each as "name (state)", sorted.
func StoppedNodes(ctx context.Context, name string) ([]string, error) {
	found, err := containers(ctx, name)
	return stopped(found), err
}

func stopped(found []container) []string {
	var names []string
	for _, c := range found {
		if c.state != "running" {
			names = append(names, fmt.Sprintf("%s (%s)", c.name, c.state))
		}
	}
	slices.Sort(names)
	return names
}

func containers(ctx context.Context, name string) ([]container, error) {
	out, err := command.Output(ctx, "docker", "ps", "--all", "--filter", "label="+clusterLabel+"="+name,
		"--format", "{{.Names}} {{.State}} {{.ID}}", "--no-trunc")
	if err != nil {
		return nil, fmt.Errorf("listing the containers of cluster %s: %w", name, err)
	}
	var found []container
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 3 {
			found = append(found, container{fields[0], fields[1], fields[2]})
		}
	}
	return found, nil
}

const deleteTimeout = 2 * time.Minute

// Delete removes the cluster's containers, in whatever state, and their volumes. It does not touch
// kubeconfig files, and succeeds if there is nothing to remove.
func Delete(ctx context.Context, name string) error {
	ctx, cancel := progress.Within(ctx, deleteTimeout, "not done")
	defer cancel()

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

// freezer is the mount point of cgroup v1's freezer.
const freezer = "/sys/fs/cgroup/freezer"

// thaw resumes the frozen processes of a container, and of containers in it, so that they can be
// killed. runc freezes a cgroup while it changes it; if runc is killed meanwhile, the cgroup
// remains frozen. Under cgroup v1 a frozen process handles no signal, and the engine waits for it
// forever. thaw ignores errors, since the removal of the container then fails. root is the
// freezer's mount point, which may be missing.
func thaw(root, container string) {
	if container == "" {
		return // "" would match every container on this machine
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "freezer.state" || !strings.Contains(path, container) {
			return nil //nolint:nilerr // a cgroup may disappear at any time
		}
		if state, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(state)) != "THAWED" {
			_ = os.WriteFile(path, []byte("THAWED"), 0)
		}
		return nil
	})
}
