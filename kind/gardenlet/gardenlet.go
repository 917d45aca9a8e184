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

// DefaultAttempts is how often a flow is run if it fails.
const DefaultAttempts = 3

// firstPause is how long a failed flow rests before it is run again; then the pause doubles.
const firstPause = 2 * time.Second

// Gardenlet drives a shoot. It has no state of its own: what a flow must know of the one before is in the seed, as the
// Cluster resource. A value may be copied, for example to change Attempts. Only one flow of a shoot may run at a time.
type Gardenlet struct {
	// Name is the name of the shoot that it drives; the flows refuse another one.
	Name string
	// Seed is the seed cluster, Shoot the cluster that serves as shoot.
	Seed, Shoot kubernetes.Interface
	// ShootKubeconfig leads to the shoot from pods of the seed and from the shoot's nodes; credentials are inline.
	ShootKubeconfig []byte
	// Garden holds the ControllerRegistrations and what a shoot refers to in spec.resources (gardener.NewGarden).
	Garden client.Client
	// ResourceManagerImage is the reference of the image of gardener-resource-manager, present on the seed's node.
	ResourceManagerImage string
	// NodeAgentBinary is the gardener-node-agent for the machines.
	NodeAgentBinary []byte
	// Machines are the machines of the shoot's only worker pool. Without any the pool is empty.
	Machines []Machine
	// IPFamilies are those of the cluster that serves as shoot, the first one first. Without any they are what the shoot says.
	IPFamilies []gardencorev1beta1.IPFamily
	// Attempts is how often a flow is run if it fails; 0 means DefaultAttempts.
	Attempts int
	// Log takes what gardener's components log. The zero value discards it.
	Log logr.Logger

	// pause is the first pause between two attempts; 0 means firstPause.
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

// runOnce is one run of a flow with gardenlet's book-keeping around it: the Cluster resource shows the operation before,
// while and after the flow runs.
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

// runFlow runs the flow of the process. Nothing of it goes on when it returns.
func (o *shootOperation) runFlow(ctx context.Context, p process) error {
	defer gardener.Hurry(ctx, o.SeedClientSet.Client(), o.Shoot.ControlPlaneNamespace)()
	return p.newGraph(o.tasks()).Compile().Run(ctx, flow.Opts{Log: o.Logger})
}

// willNotRetry says whether gardenlet gives up after this error of a flow.
func willNotRetry(err error) bool {
	taskErrors := flow.Errors(err)
	if taskErrors == nil {
		return false
	}
	return v1beta1helper.HasNonRetryableErrorCode(v1beta1helper.NewWrappedLastErrors("", taskErrors).LastErrors...)
}
