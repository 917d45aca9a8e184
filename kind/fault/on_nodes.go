package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// onNodes is a fault that nodes bring about.
type onNodes struct {
	fault spec.Fault
	way   Way
	// arguments of the way, for each node that has a part in it.
	arguments map[*cluster.Node]string
}

func (o onNodes) Available(context.Context) error { return nil }

func (o onNodes) Inject(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for node, argument := range o.arguments {
		group.Go(func() error {
			arguments, err := BeginArguments(o.fault, o.way, argument)
			if err != nil {
				return err
			}
			_, err = faultScript(ctx, node, arguments...)
			return err
		})
	}
	return group.Wait()
}

func (o onNodes) Clear(ctx context.Context) error {
	var group errgroup.Group // one node that does not answer keeps no other
	failed := make(chan error, len(o.arguments))
	for node := range o.arguments {
		group.Go(func() error {
			_, err := faultScript(ctx, node, EndArguments(o.fault.ID)...)
			failed <- err
			return nil
		})
	}
	_ = group.Wait()
	close(failed)
	var all error
	for err := range failed {
		all = errors.Join(all, err)
	}
	return all
}

// faultScript runs the script of the faults on a node. The error of a failed command leaves the script out, which is long.
func faultScript(ctx context.Context, node *cluster.Node, arguments ...string) (string, error) {
	output, err := node.Script(ctx, NodeScript, arguments...)
	var failed *command.Error
	if !errors.As(err, &failed) {
		return output, err
	}
	cause := failed.Inner
	if failed.Cause != nil {
		cause = failed.Cause
	}
	doing := strings.Join(arguments[:min(2, len(arguments))], " ")
	return output, fmt.Errorf("on %s, %q: %w: %s", node.Name(), doing, cause, command.Tail(string(failed.Output), faultOutput))
}

// faultOutput is how many lines of a failed script are shown.
const faultOutput = 4

// unreachable keeps all nodes of the shoot from the target's addresses.
func unreachable(ctx context.Context, t *kind.Testbed, f spec.Fault, way Way) (injection, error) {
	addresses, err := addressesOf(ctx, t, f.Target)
	if err != nil {
		return nil, err
	}
	return onShoot(t, f, way, strings.Join(addresses, " ")), nil
}

// onShoot is a fault that each node of the shoot brings about in the same way.
func onShoot(t *kind.Testbed, f spec.Fault, way Way, argument string) onNodes {
	all := onNodes{f, way, map[*cluster.Node]string{}}
	for _, node := range t.Shoot.Nodes() {
		all.arguments[node] = argument
	}
	return all
}

// addressesOf returns all by which the target can be reached: one that is left open is found by whoever looks its name up.
func addressesOf(ctx context.Context, t *kind.Testbed, target spec.Target) ([]string, error) {
	if target.Role == spec.Cache {
		service, err := cache.ServiceOf(ctx, t, target.Name)
		if err != nil {
			return nil, err
		}
		return service.Spec.ClusterIPs, nil
	}
	var all []string
	for _, address := range t.Upstream(target.Name).Addresses() {
		all = append(all, address.String())
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no address: %w", target, upstream.ErrNotRunning)
	}
	return all, nil
}

// apiServerPort is that of an API server, on its node.
const apiServerPort = "6443"

// serverInjection breaks the API server of a cluster, which is a pod of its control plane's kubelet.
func serverInjection(ctx context.Context, t *kind.Testbed, c *cluster.Cluster, f spec.Fault) (injection, error) {
	node := c.ControlPlane()
	switch f.Kind {
	case spec.Stop:
		return onNodes{f, StopPods, map[*cluster.Node]string{node: metav1.NamespaceSystem + "/kube-apiserver-" + node.Name()}}, nil
	case spec.Refuse:
		return onNodes{f, RejectPort, map[*cluster.Node]string{node: apiServerPort}}, nil
	case spec.Latency:
		return delayServer(ctx, t, c, f)
	}
	return nil, noInjection(f)
}
