package gardenlet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/flow"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// DefaultAttempts is how often a failing flow is run.
const DefaultAttempts = 3

// firstPause is the pause before the second run of a failed flow. It doubles with each run.
const firstPause = 2 * time.Second

// Gardenlet drives a shoot. It is stateless: flows read the result of earlier ones from the Cluster
// resource in the seed. A value may be copied, for example to change Attempts. Only one flow per
// shoot may run at a time.
type Gardenlet struct {
	// Name is the name of its shoot. Flows refuse other shoots.
	Name string
	// Seed is the seed cluster, Shoot the cluster that serves as the shoot.
	Seed, Shoot kubernetes.Interface
	// ShootKubeconfig is for the shoot as seen from the seed's pods and the shoot's nodes. Credentials
	// must be inline.
	ShootKubeconfig []byte
	// Garden holds the ControllerRegistrations and the objects that a shoot refers to in
	// spec.resources (gardener.NewGarden).
	Garden client.Client
	// ResourceManagerImage is the reference of gardener-resource-manager's image, which must already
	// be on the seed's node.
	ResourceManagerImage string
	// NodeAgentBinary is the gardener-node-agent for the machines.
	NodeAgentBinary []byte
	// Machines are the machines of the shoot's only worker pool, which may be empty.
	Machines []Machine
	// IPFamilies are those of the cluster that serves as the shoot, the primary one first. Empty means
	// those of the Shoot.
	IPFamilies []gardencorev1beta1.IPFamily
	// Attempts is how often a failing flow is run. 0 means DefaultAttempts.
	Attempts int
	// Log receives the logs of gardener's components. The zero value discards them.
	Log logr.Logger

	// pause replaces firstPause unless it is 0.
	pause time.Duration
}

// run runs the flow of the process until it succeeds.
func (g *Gardenlet) run(ctx context.Context, shoot *gardencorev1beta1.Shoot, p process) error {
	backoff := wait.Backoff{Duration: cmp.Or(g.pause, firstPause), Factor: 2, Steps: cmp.Or(g.Attempts, DefaultAttempts)}
	var flowErr error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		flowErr = g.runOnce(ctx, shoot, p)
		return flowErr == nil || willNotRetry(flowErr), nil
	})
	if flowErr != nil {
		return flowErr
	}
	return err
}

// runOnce runs the flow once, with gardenlet's bookkeeping: the Cluster resource shows the
// operation before, during and after the flow.
func (g *Gardenlet) runOnce(ctx context.Context, shoot *gardencorev1beta1.Shoot, p process) error {
	o, err := g.prepare(ctx, shoot, p)
	if err != nil {
		return fmt.Errorf("prepare the operation on shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	if err := o.start(ctx); err != nil {
		return err
	}
	flowErr := o.runFlow(ctx, p)
	if ctx.Err() != nil {
		return errors.Join(flowErr, context.Cause(ctx))
	}
	if err := o.finish(ctx, flowErr); err != nil {
		return errors.Join(flowErr, err)
	}
	return flowErr
}

// runFlow runs the flow of the process. No part of it continues after it returns.
func (o *shootOperation) runFlow(ctx context.Context, p process) error {
	defer gardener.RequeueDeletions(ctx, o.SeedClientSet.Client(), o.Shoot.ControlPlaneNamespace)()
	return p.newGraph(o.tasks()).Compile().Run(ctx, flow.Opts{Log: o.Logger})
}

// willNotRetry reports whether gardenlet gives up after this error of a flow.
func willNotRetry(err error) bool {
	taskErrors := flow.Errors(err)
	if taskErrors == nil {
		return false
	}
	return v1beta1helper.HasNonRetryableErrorCode(v1beta1helper.NewWrappedLastErrors("", taskErrors).LastErrors...)
}
