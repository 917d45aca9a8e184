package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// createdMarker is a file on the control plane that holds the fingerprint of a completely created
// cluster. It disappears with the container.
const createdMarker = "/kind/registry-cache-testbed"

// Ensure returns the cluster that config describes. It verifies an existing cluster, repairs it
// where possible, and rebuilds it if a container is missing or not running, if its creation was
// interrupted, if its configuration differs, or if its API server or nodes do not become ready in
// time. Clusters with different names may be ensured in parallel.
//
// When ctx ends, Ensure removes what it created so far. A killed process leaves containers with
// kind's label, which Delete and the next Ensure find.
func Ensure(ctx context.Context, config Config) (*Cluster, error) {
	release, err := HoldNetwork(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
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
		reason = summary(err)
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

// summary shortens the error for a progress line.
func summary(err error) string {
	var wait *notReady
	if errors.As(err, &wait) {
		return fmt.Sprintf("%s: not in %s", wait.what, wait.timeout)
	}
	return command.Tail(err.Error(), 1)
}

// complete applies everything that kind does not, and waits until the cluster is usable. It works
// for new and for existing clusters, whose nodes may have been stopped or restarted.
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
	group, groupCtx := errgroup.WithContext(ctx)
	for _, n := range c.nodes {
		group.Go(func() error {
			if err := n.trust(groupCtx, config.CA); err != nil {
				return err
			}
			return n.applyRuntime(groupCtx, config.Runtime)
		})
	}
	group.Go(func() error { return c.waitForAPI(groupCtx) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	start := time.Now()
	restarted, err := c.restarted(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.startStopped(ctx); err != nil {
		return nil, err
	}
	if !c.stock {
		if err := c.applyPodNetwork(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.applyKubeProxyMode(ctx, config.KubeProxyMode); err != nil {
		return nil, err
	}
	if restarted {
		if err := c.waitForHeartbeats(ctx, start); err != nil {
			return nil, err
		}
	}
	if err := c.waitUntilUsable(ctx); err != nil {
		return nil, err
	}
	return c, c.markCompleted(ctx)
}

// startStopped starts machines that StopMachine stopped and nobody started since.
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
		if err := n.StartMachine(ctx); err != nil {
			return fmt.Errorf("starting %s again: %w", n.Name(), err)
		}
	}
	return nil
}
