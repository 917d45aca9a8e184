package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// prepare returns the injection of a fault, or an error if it cannot be applied now. It changes
// nothing.
func prepare(ctx context.Context, t *kind.Testbed, f spec.Fault) (kind.Injection, error) {
	if f.AppliedByUpstream() {
		registry := t.Upstream(f.Target.Name)
		if registry == nil || !registry.Running() {
			return nil, fmt.Errorf("%s: %w", f.Target, upstream.ErrNotRunning)
		}
		return upstreamAnswers{registry, f}, nil
	}
	switch f.Kind {
	case spec.Loss:
		return prepareLoss(ctx, t, f)
	case spec.Kill:
		found, err := podsOf(ctx, t, f.Target)
		return kill{found}, err
	}
	switch _, argument := f.Method(); {
	case argument == spec.Addresses:
		addresses, err := AddressesOf(ctx, t, f.Target)
		return OnEach(t.Shoot.Nodes(), f, strings.Join(addresses, " ")), err
	case argument == spec.Pods, argument == spec.Volumes:
		return onNodesOfPods(ctx, t, f, argument)
	case f.Target.Role == spec.Cache:
		return t.Extension.Targets.Prepare(ctx, t, f)
	}
	return nil, fmt.Errorf("fault %s of %s has no injection", f.Kind, f.Target.Role)
}

// active returns an injection of which only Clear may be called. It sends no API requests.
func active(t *kind.Testbed, f spec.Fault) (kind.Injection, error) {
	switch {
	case f.AppliedByUpstream():
		return upstreamAnswers{t.Upstream(f.Target.Name), f}, nil
	case f.Kind == spec.Loss:
		return newLoss(t, f)
	}
	return OnEach(t.Nodes(), f, ""), nil
}

type upstreamAnswers struct {
	registry *upstream.Registry
	fault    spec.Fault
}

func (a upstreamAnswers) Inject(ctx context.Context) error {
	return a.change(ctx, func(all []spec.Fault) []spec.Fault { return append(all, a.fault) })
}

func (a upstreamAnswers) Clear(ctx context.Context) error {
	return a.change(ctx, func(all []spec.Fault) []spec.Fault {
		return slices.DeleteFunc(all, func(f spec.Fault) bool { return f.ID == a.fault.ID })
	})
}

func (a upstreamAnswers) change(ctx context.Context, to func([]spec.Fault) []spec.Fault) error {
	all, err := a.registry.Faults(ctx)
	if err != nil {
		return err
	}
	return a.registry.SetFaults(ctx, to(all)...)
}

// kill is an injection that deletes pods once. Clear does nothing.
type kill struct{ pods pods }

// Inject deletes the pods without a grace period. The kubelet still sends SIGTERM before SIGKILL,
// and the controllers recreate the pods.
func (k kill) Inject(ctx context.Context) error {
	var failed error
	for _, pod := range k.pods.items {
		err := k.pods.api.Delete(ctx, &pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		failed = errors.Join(failed, client.IgnoreNotFound(err))
	}
	return failed
}

func (kill) Clear(context.Context) error { return nil }

// onNodesOfPods returns an injection on the nodes of the target's pods.
func onNodesOfPods(ctx context.Context, t *kind.Testbed, f spec.Fault, argument spec.Argument) (kind.Injection, error) {
	found, err := podsOf(ctx, t, f.Target)
	if err != nil {
		return nil, err
	}
	all := OnEach(nil, f, "")
	for _, pod := range found.items {
		node := t.Shoot.Node(pod.Spec.NodeName)
		if node == nil {
			return nil, fmt.Errorf("pod %s of %s is on no node", pod.Name, f.Target)
		}
		arguments := append(strings.Fields(all.Arguments[node]), pod.Namespace+"/"+pod.Name)
		if argument == spec.Volumes {
			arguments = append(strings.Fields(all.Arguments[node]), volumesOf(pod)...)
		}
		all.Arguments[node] = strings.Join(arguments, " ")
	}
	return all, nil
}

// volumesOf returns the persistent volumes of a pod, each as <pod>=<path in the container>.
func volumesOf(pod corev1.Pod) []string {
	claimed := map[string]bool{}
	for _, volume := range pod.Spec.Volumes {
		claimed[volume.Name] = volume.PersistentVolumeClaim != nil
	}
	var volumes []string
	for _, container := range pod.Spec.Containers {
		for _, mount := range container.VolumeMounts {
			if claimed[mount.Name] {
				volumes = append(volumes, pod.Name+"="+mount.MountPath)
			}
		}
	}
	return volumes
}
