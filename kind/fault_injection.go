package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// kubeletUnit and containerdUnit are units of systemd on every node.
const (
	kubeletUnit    = "kubelet.service"
	containerdUnit = "containerd.service"
)

// injection returns how the fault is brought about, by its kind and its target.
func (t *Testbed) injection(ctx context.Context, f fault.Fault) (injection, error) {
	if f.OfAnswers() {
		return answers{t.Upstream(f.Target.Name), f}, nil
	}
	switch f.Kind {
	case fault.Refuse:
		return t.unreachable(ctx, f, fault.Reject)
	case fault.Blackhole:
		return t.unreachable(ctx, f, fault.Drop)
	case fault.Stop:
		return t.stopped(ctx, f)
	case fault.Kill:
		return t.killed(ctx, f)
	case fault.KubeletStop:
		node, err := t.nodeOf(f.Target.Name)
		return onNodes{f, fault.StopUnit, map[*cluster.Node]string{node: kubeletUnit}}, err
	case fault.ContainerdRestart:
		node, err := t.nodeOf(f.Target.Name)
		return moment{func(ctx context.Context) error {
			_, err := node.Exec(ctx, "systemctl", "restart", containerdUnit)
			return err
		}}, err
	default:
		return nil, fmt.Errorf("fault %s of %s has no injection", f.Kind, f.Target.Role)
	}
}

// clearing is the injection of a fault that is active, for its Clear alone: nothing is looked up.
func (t *Testbed) clearing(f fault.Fault) injection {
	if f.OfAnswers() {
		return answers{t.Upstream(f.Target.Name), f}
	}
	everywhere := onNodes{fault: f, arguments: map[*cluster.Node]string{}}
	for _, node := range t.shoot.Nodes() {
		everywhere.arguments[node] = ""
	}
	return everywhere
}

// answers is a fault of an upstream's own answers.
type answers struct {
	registry *upstream.Registry
	fault    fault.Fault
}

func (a answers) Available(context.Context) error {
	if a.registry == nil || !a.registry.Running() {
		return upstream.ErrNotRunning
	}
	return nil
}

func (a answers) Inject(ctx context.Context) error {
	return a.change(ctx, func(all []fault.Fault) []fault.Fault { return append(all, a.fault) })
}

func (a answers) Clear(ctx context.Context) error {
	return a.change(ctx, func(all []fault.Fault) []fault.Fault {
		return slices.DeleteFunc(all, func(f fault.Fault) bool { return f.ID == a.fault.ID })
	})
}

func (a answers) change(ctx context.Context, to func([]fault.Fault) []fault.Fault) error {
	all, err := a.registry.Faults(ctx)
	if err != nil {
		return err
	}
	return a.registry.SetFaults(ctx, to(all)...)
}

// onNodes is a fault that nodes of the shoot bring about.
type onNodes struct {
	fault fault.Fault
	way   fault.Way
	// arguments of the way, for each node that has a part in it.
	arguments map[*cluster.Node]string
}

func (o onNodes) Available(context.Context) error { return nil }

func (o onNodes) Inject(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for node, argument := range o.arguments {
		group.Go(func() error {
			arguments, err := o.fault.BeginArguments(o.way, argument)
			if err != nil {
				return err
			}
			_, err = node.Script(ctx, fault.NodeScript, arguments...)
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
			_, err := node.Script(ctx, fault.NodeScript, fault.EndArguments(o.fault.ID)...)
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

// unreachable keeps all nodes of the shoot from the target's addresses.
func (t *Testbed) unreachable(ctx context.Context, f fault.Fault, way fault.Way) (injection, error) {
	addresses, err := t.addressesOf(ctx, f.Target)
	if err != nil {
		return nil, err
	}
	all := onNodes{f, way, map[*cluster.Node]string{}}
	for _, node := range t.shoot.Nodes() {
		all.arguments[node] = strings.Join(addresses, " ")
	}
	return all, nil
}

// addressesOf returns all by which the target can be reached: one that is left open is found by whoever looks its name up.
func (t *Testbed) addressesOf(ctx context.Context, target fault.Target) ([]string, error) {
	if target.Role == fault.Cache {
		service, err := t.serviceOf(ctx, target.Name)
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

// stopped stops the processes of a cache, on the nodes that they are on.
func (t *Testbed) stopped(ctx context.Context, f fault.Fault) (injection, error) {
	_, pods, err := t.podsOf(ctx, f.Target.Name)
	if err != nil {
		return nil, err
	}
	names := map[*cluster.Node][]string{}
	for _, pod := range pods {
		node, err := t.nodeOf(pod.Spec.NodeName)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		names[node] = append(names[node], pod.Name)
	}
	stop := onNodes{f, fault.StopPods, map[*cluster.Node]string{}}
	for node, pods := range names {
		stop.arguments[node] = strings.Join(pods, " ")
	}
	return stop, nil
}

// killed deletes the pods of a cache without mercy; its StatefulSet makes them anew.
func (t *Testbed) killed(ctx context.Context, f fault.Fault) (injection, error) {
	api, pods, err := t.podsOf(ctx, f.Target.Name)
	if err != nil {
		return nil, err
	}
	return moment{func(ctx context.Context) error {
		var failed error
		for _, pod := range pods {
			err := api.Delete(ctx, &pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
			failed = errors.Join(failed, client.IgnoreNotFound(err))
		}
		return failed
	}}, nil
}

// podsOf returns the pods of a cache, of which there must be some, and a client.
func (t *Testbed) podsOf(ctx context.Context, host string) (client.Client, []corev1.Pod, error) {
	service, err := t.serviceOf(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	api, err := client.New(t.shoot.RESTConfig(), client.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("client for the shoot: %w", err)
	}
	pods := &corev1.PodList{}
	if err := api.List(ctx, pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return nil, nil, fmt.Errorf("list the pods of the cache of %s: %w", host, err)
	}
	if len(pods.Items) == 0 {
		return nil, nil, fmt.Errorf("the cache of %s has no pod", host)
	}
	return api, pods.Items, nil
}

// moment is a fault without an end of its own: there is nothing to clear.
type moment struct {
	happen func(context.Context) error
}

func (moment) Available(context.Context) error { return nil }

func (m moment) Inject(ctx context.Context) error { return m.happen(ctx) }

func (moment) Clear(context.Context) error { return nil }
