package fieldbugs

import (
	"context"
	"errors"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/pull"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// Push pushes a new image to an upstream ("alpha").
func (r *Rig) Push(ctx context.Context, upstream string, flags ...string) (pull.Pushed, error) {
	args := append([]string{"push", "--upstream", upstream}, flags...)
	var line *line
	r.show(func() { line = r.script.push(args) })
	var pushed pull.Pushed
	err := r.decode(ctx, &pushed, args)
	r.script.bindImage(line, pushed)
	return pushed, err
}

// Pull pulls an image on workers. A failed pull is in the report, and is not an error.
func (r *Rig) Pull(ctx context.Context, reference string, flags ...string) (*pull.Report, error) {
	report := &pull.Report{}
	err := r.runJSON(ctx, report, append([]string{"pull", reference}, flags...)...)
	var failed *CommandError
	if errors.As(err, &failed) && failed.Code == 1 && report.Total.Failed > 0 {
		err = nil
	}
	return report, err
}

// pushAndPull pushes a new image to an upstream, and pulls it.
func (r *Rig) pushAndPull(ctx context.Context, upstream string, flags ...string) (pull.Pushed, *pull.Report, error) {
	img, err := r.Push(ctx, upstream)
	if err != nil {
		return img, nil, err
	}
	report, err := r.Pull(ctx, img.Reference, flags...)
	return img, report, err
}

// Break injects a fault.
func (r *Rig) Break(ctx context.Context, target string, kind spec.Kind, flags ...string) error {
	_, err := r.Testbed(ctx, append([]string{"fault", "add", target, string(kind)}, flags...)...)
	return err
}

// DeleteFaults deletes all faults.
func (r *Rig) DeleteFaults(ctx context.Context) error {
	_, err := r.Testbed(ctx, "fault", "delete")
	return err
}

// Apply applies a manifest of a Shoot and waits for its reconciliation. The path is relative to the
// root of the repository.
func (r *Rig) Apply(ctx context.Context, manifest string) error {
	_, err := r.Testbed(ctx, "shoot", "apply", "-f", manifest)
	return err
}

// Shoot returns the status of the Shoot and its nodes.
func (r *Rig) Shoot(ctx context.Context) (status.Shoot, error) {
	var status status.Shoot
	err := r.runJSON(ctx, &status, "shoot", "get")
	return status, err
}

// Exec runs a command on a node ("worker2") and returns its standard output.
func (r *Rig) Exec(ctx context.Context, node string, argv ...string) (string, error) {
	return r.Testbed(ctx, append([]string{"exec", node, "--"}, argv...)...)
}

// Kubectl runs kubectl for a cluster ("shoot", "seed") and returns its standard output.
func (r *Rig) Kubectl(ctx context.Context, cluster string, argv ...string) (string, error) {
	return r.Testbed(ctx, append([]string{"kubectl", cluster}, argv...)...)
}
