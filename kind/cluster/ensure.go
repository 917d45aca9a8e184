package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// createdMarker is a file on each node with the fingerprint of a completely created cluster. It is
// on a tmpfs, so a restart of the node removes it.
const createdMarker = "/run/registry-cache-testbed"

// Ensure returns the cluster that config describes. It verifies an existing cluster, repairs it
// where possible, and rebuilds it if a container is missing, stopped or restarted, if its creation
// was interrupted, if its configuration differs, or if its API server or nodes do not become ready
// in time. Calls for clusters with different names may run in parallel.
//
// If ctx ends while kind creates the cluster, Ensure removes its containers. If this process is
// killed, the containers remain, and Delete and the next Ensure find them by kind's label.
func Ensure(ctx context.Context, config Config) (*Cluster, error) {
	reason, err := inspect(ctx, config)
	if err != nil {
		return nil, err
	}
	if reason == "" {
		c, err := complete(ctx, config)
		if err == nil {
			progress.Note(ctx, "%s kept", config.Name)
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		reason = command.Tail(err.Error(), 1)
	}

	if reason != absent {
		progress.Note(ctx, "%s rebuilt: %s", config.Name, reason)
		if err := Delete(ctx, config.Name); err != nil {
			return nil, err
		}
	}
	if err := create(ctx, config); err != nil {
		return nil, err
	}
	c, err := complete(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Name, err)
	}
	progress.Note(ctx, "%s ready", config.Name)
	return c, nil
}

// complete applies the settings that kind does not apply, and waits until the cluster is usable.
// The cluster may be new, or an existing one with stopped machines.
func complete(ctx context.Context, config Config) (*Cluster, error) {
	c, err := find(ctx, config.Name)
	if err != nil {
		return nil, err
	}
	c.stock = config.StockImage
	if err := c.exportKubeconfig(ctx, config.Kubeconfig); err != nil {
		return nil, err
	}
	if err := c.connect(config.Kubeconfig); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(config.Agent)
	if err != nil {
		return nil, fmt.Errorf("read the agent for the nodes: %w", err)
	}
	prepare := func(ctx context.Context, n *Node) error {
		return progress.InOrder(ctx,
			func(ctx context.Context) error { return n.installAgent(ctx, program) },
			func(ctx context.Context) error { return n.trustCA(ctx, config.CA) })
	}
	err = progress.AtOnce(ctx, c.waitForAPI, func(ctx context.Context) error { return progress.ForEach(ctx, c.nodes, prepare) })
	if err != nil {
		return nil, err
	}
	return c, progress.InOrder(ctx, c.startStopped, c.applyPodNetwork, c.placeCoreDNS, c.waitUntilUsable)
}

// startStopped starts the workers that StopMachine stopped: those whose kubelet does not run.
func (c *Cluster) startStopped(ctx context.Context) error {
	for _, n := range c.Workers() {
		runs, err := n.kubeletRuns(ctx)
		if err != nil {
			return err
		}
		if runs {
			continue
		}
		progress.Note(ctx, "%s started again", n.Name())
		if err := n.StartMachine(ctx, nil); err != nil {
			return fmt.Errorf("starting %s again: %w", n.Name(), err)
		}
	}
	return nil
}

const (
	createTimeout = 8 * time.Minute
	// abortTimeout bounds how long kind may take to notice that its containers are gone.
	abortTimeout = time.Minute
	// createOutput limits how many lines of a failed command's output the error contains.
	createOutput = 30
)

// create creates the cluster with kind, which removes its containers if the creation fails. kind
// takes no context: when ctx ends, create removes containers repeatedly until kind returns.
func create(ctx context.Context, config Config) error {
	ctx, cancel := progress.Within(ctx, createTimeout, "not done")
	defer cancel()

	scratch, err := emptyScratch(config)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	if err := writeAuditPolicy(config); err != nil {
		return fmt.Errorf("creating cluster %s: %w", config.Name, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = newProvider().Create(config.Name,
			kind.CreateWithV1Alpha4Config(KindConfig(config)), // kind adds its defaults to this value
			kind.CreateWithKubeconfigPath(filepath.Join(scratch, "kubeconfig")),
			kind.CreateWithDisplayUsage(false),
			kind.CreateWithDisplaySalutation(false))
	}()
	select {
	case <-done:
	case <-ctx.Done():
		abort(ctx, config.Name, done)
		return fmt.Errorf("creating cluster %s: %w", config.Name, context.Cause(ctx))
	}
	if failed := exec.RunErrorForError(err); failed != nil { // kind's errors omit the output
		err = fmt.Errorf("%w:\n%s", err, command.Tail(string(failed.Output), createOutput))
	}
	if err != nil {
		return fmt.Errorf("creating cluster %s: %w", config.Name, err)
	}
	c, err := find(ctx, config.Name)
	if err != nil {
		return err
	}
	return progress.ForEach(ctx, c.nodes, func(ctx context.Context, n *Node) error {
		return n.WriteFile(ctx, createdMarker, 0o644, []byte(fingerprint(config)))
	})
}

// emptyScratch returns an empty directory for the kubeconfig that kind writes. It is next to
// Config.Kubeconfig, so that removing the testbed's folder also removes the credentials in it.
func emptyScratch(config Config) (string, error) {
	scratch := filepath.Join(filepath.Dir(config.Kubeconfig), ".create-"+config.Name)
	if err := errors.Join(os.RemoveAll(scratch), os.MkdirAll(scratch, 0o700)); err != nil {
		return "", fmt.Errorf("create the folder for kind's kubeconfig of cluster %s: %w", config.Name, err)
	}
	return scratch, nil
}

// abort removes the cluster's containers repeatedly until kind has returned and creates no more.
func abort(ctx context.Context, name string, done <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for running := true; running; {
		_ = Delete(ctx, name)
		select {
		case <-done:
			running = false
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	_ = Delete(ctx, name)
}
