package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// first returns the pod that comes first by name, of those that run.
func (p Pods) First() (*corev1.Pod, error) {
	var first *corev1.Pod
	for i := range p.items {
		pod := &p.items[i]
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && (first == nil || pod.Name < first.Name) {
			first = pod
		}
	}
	if first == nil {
		return nil, fmt.Errorf("no pod of %s runs", p.of)
	}
	return first, nil
}

// pods are those of a target: there are some, all in one namespace.
type Pods struct {
	of      spec.Target
	Cluster *cluster.Cluster
	api     client.Client
	items   []corev1.Pod
}

// cachePods are those of the cache of an upstream.
func CachePods(ctx context.Context, t *kind.Testbed, host string) (Pods, error) {
	service, err := cache.ServiceOf(ctx, t, host)
	if err != nil {
		return Pods{}, err
	}
	target := spec.Target{Role: spec.Cache, Name: host}
	return podsOf(ctx, target, t.Shoot, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector))
}

// extensionPods are those of the extension in the seed.
func ExtensionPods(ctx context.Context, t *kind.Testbed) (Pods, error) {
	return podsOf(ctx, spec.Target{Role: spec.Extension}, t.Seed, client.InNamespace(kind.ExtensionNamespace))
}

func podsOf(ctx context.Context, target spec.Target, c *cluster.Cluster, options ...client.ListOption) (Pods, error) {
	api, err := client.New(c.RESTConfig(), client.Options{})
	if err != nil {
		return Pods{}, fmt.Errorf("client for %s: %w", c.Name(), err)
	}
	list := &corev1.PodList{}
	if err := api.List(ctx, list, options...); err != nil {
		return Pods{}, fmt.Errorf("list the pods of %s: %w", target, err)
	}
	if len(list.Items) == 0 {
		return Pods{}, fmt.Errorf("%s has no pod", target)
	}
	return Pods{target, c, api, list.Items}, nil
}

// kill deletes them without a grace period: their processes still get SIGTERM, and a moment by the kubelet, while whoever wants the
// pods makes new ones.
func (p Pods) kill(ctx context.Context) error {
	var failed error
	for _, pod := range p.items {
		err := p.api.Delete(ctx, &pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		failed = errors.Join(failed, client.IgnoreNotFound(err))
	}
	return failed
}

// stopped stops their processes.
func (p Pods) stopped(f spec.Fault) (injection, error) {
	return p.onTheirNodes(f, StopPods, func(pod corev1.Pod) []string { return []string{pod.Namespace + "/" + pod.Name} })
}

// full leaves no room in their volumes.
func (p Pods) full(f spec.Fault) (injection, error) {
	return p.onTheirNodes(f, FillVolumes, volumesOf)
}

// onTheirNodes is a fault that the nodes of the pods bring about, with what it does to each pod.
func (p Pods) onTheirNodes(f spec.Fault, way Way, argument func(corev1.Pod) []string) (injection, error) {
	arguments := map[*cluster.Node][]string{}
	for _, pod := range p.items {
		node := cluster.Named(p.Cluster, pod.Spec.NodeName)
		if node == nil {
			return nil, fmt.Errorf("pod %s of %s is on no node", pod.Name, p.of)
		}
		arguments[node] = append(arguments[node], argument(pod)...)
	}
	all := onNodes{f, way, map[*cluster.Node]string{}}
	for node, words := range arguments {
		all.arguments[node] = strings.Join(words, " ")
	}
	return all, nil
}

// volumesOf returns the volumes of a pod that are claimed, as fault.FillVolumes takes them.
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
