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

const (
	createTimeout = 8 * time.Minute
	// abortTimeout bounds how long kind may take to notice that its containers are gone.
	abortTimeout = time.Minute
	// createOutput is the number of lines of a failed kubeadm's output in the error.
	createOutput = 30
)

// create runs kind, which removes its containers if it fails. kind takes no context: when ctx ends,
// create removes the containers until kind gives up.
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
	if err != nil {
		return fmt.Errorf("creating cluster %s: %w", config.Name, withOutput(err))
	}
	return markCreated(ctx, config.Name, fingerprint(config))
}

// emptyScratch returns an empty directory for the kubeconfig that kind writes, next to
// Config.Kubeconfig. Removing the testbed's folder therefore removes these admin credentials too.
func emptyScratch(config Config) (string, error) {
	scratch := filepath.Join(filepath.Dir(config.Kubeconfig), ".create-"+config.Name)
	if err := errors.Join(os.RemoveAll(scratch), os.MkdirAll(scratch, 0o700)); err != nil {
		return "", fmt.Errorf("create the folder for kind's kubeconfig of cluster %s: %w", config.Name, err)
	}
	return scratch, nil
}

// abort removes the cluster's containers repeatedly until kind has returned and can create no more.
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

// withOutput adds the end of the failed command's output, which kind's errors omit.
func withOutput(err error) error {
	failed := exec.RunErrorForError(err)
	if failed == nil {
		return err
	}
	return fmt.Errorf("%w:\n%s", err, command.Tail(string(failed.Output), createOutput))
}
