package bringup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// GardenletCommand is the command of the program testbed that calls kind.Testbed.ManageGarden.
const GardenletCommand = "gardenlet"

// gardenletTimeout bounds the start of the gardenlet process, which may wait for another build.
const gardenletTimeout = 5 * time.Minute

// deployGarden deploys Gardener's control plane into the seed, on the seed's etcd.
func deployGarden(ctx context.Context, t *kind.Testbed) error {
	garden, err := gardener.NewGardenClient(t.Seed.RESTConfig())
	if err != nil {
		return err
	}
	plane := gardener.ControlPlane{
		Image:             func(program string) string { return t.Images[program].Ref },
		KubernetesVersion: garden.Version(), // the shoot cluster has the same (see configuration.Validate)
	}
	for name, content := range map[string]*[]byte{
		"etcd/ca.crt": &plane.EtcdCA, "apiserver-etcd-client.crt": &plane.EtcdCertificate, "apiserver-etcd-client.key": &plane.EtcdKey,
	} {
		if *content, err = t.Seed.ControlPlane().ReadFile(ctx, "/etc/kubernetes/pki/"+name); err != nil {
			return fmt.Errorf("read the certificates for the seed's etcd: %w", err)
		}
	}
	return plane.Deploy(ctx, garden.Client())
}

// startGardenlet starts the process of the permanent gardenlet, and waits until it renews its
// lease. The process is in a session of its own, so Ctrl-C in a terminal does not end it. It
// inherits this process's mark (command.MarkChildren), by which Down and the next Up find and end
// it.
func startGardenlet(ctx context.Context, t *kind.Testbed) error {
	log, err := os.OpenFile(t.State.GardenletLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the log of gardenlet: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	started := time.Now()
	process := exec.Command(t.Images[kind.ProgramTestbed].Executable, GardenletCommand, "--prefix", t.Prefix) //nolint:noctx // it outlives this process
	process.Dir, process.Stdout, process.Stderr = t.Root, log, log
	process.Env = append(os.Environ(), "GOGC=50") // saves memory
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		return fmt.Errorf("start gardenlet: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		cancel(fmt.Errorf("gardenlet must run until the testbed is removed, but ended: %w", cmp.Or(process.Wait(), errors.New("exit code 0"))))
	}()
	err = gardener.Poll(ctx, gardenletTimeout, "gardenlet does not renew its lease", func(ctx context.Context) error {
		renewed, err := gardenlet.Renewed(ctx, t.Gardenlet.Garden)
		if err == nil && renewed.Before(started) {
			err = fmt.Errorf("last renewed at %s", renewed)
		}
		return err
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w, see %s", err, t.Relative(t.State.GardenletLog()))
	}
	return nil
}
