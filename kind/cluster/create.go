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
)

const (
	createTimeout = 8 * time.Minute
	// abortTimeout is the time that kind has to notice that its containers are gone.
	abortTimeout = time.Minute
	// createOutput is how many lines of a failed kubeadm are shown.
	createOutput = 30
)

// create runs kind, which removes the containers again if it fails. kind takes no context: when ctx ends, its containers
// are removed under it until it gives up.
func create(ctx context.Context, config Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, createTimeout, fmt.Errorf("kind did not create it in %s", createTimeout))
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
			kind.CreateWithV1Alpha4Config(KindConfig(config)), // to which kind adds its defaults,
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
	if err != nil {
		return fmt.Errorf("creating cluster %s: %w", config.Name, withOutput(err))
	}
	return markCreated(ctx, config.Name, fingerprint(config))
}

// emptyScratch returns the directory for the kubeconfig that kind writes, without what a killed run left in it. It lies
// beside the kubeconfig that we write, so that whoever removes that folder removes an admin's credentials with it.
func emptyScratch(config Config) (string, error) {
	scratch := filepath.Join(filepath.Dir(config.Kubeconfig), ".create-"+config.Name)
	if err := errors.Join(os.RemoveAll(scratch), os.MkdirAll(scratch, 0o700)); err != nil {
		return "", fmt.Errorf("a folder for kind's kubeconfig of cluster %s: %w", config.Name, err)
	}
	return scratch, nil
}

// abort removes the cluster's containers again and again, until kind has returned and nothing can come any more.
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

func markCreated(ctx context.Context, name, fingerprint string) error {
	c, err := find(ctx, name)
	if err != nil {
		return err
	}
	return c.ControlPlane().WriteFile(ctx, createdMarker, 0o644, []byte(fingerprint))
}

// withOutput adds the end of the failed command's output, which kind's errors leave out.
func withOutput(err error) error {
	failed := exec.RunErrorForError(err)
	if failed == nil {
		return err
	}
	return fmt.Errorf("%w:\n%s", err, command.Tail(string(failed.Output), createOutput))
}
