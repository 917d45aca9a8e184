package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault"
)

// pods are those of a target: there are some, all in one namespace.
type pods struct {
	of      fault.Target
	cluster *cluster.Cluster
	api     client.Client
	items   []corev1.Pod
}

// cachePods are those of the cache of an upstream.
func (t *Testbed) cachePods(ctx context.Context, host string) (pods, error) {
	service, err := t.serviceOf(ctx, host)
	if err != nil {
		return pods{}, err
	}
	target := fault.Target{Role: fault.Cache, Name: host}
	return podsOf(ctx, target, t.shoot, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector))
}

// extensionPods are those of the extension in the seed.
func (t *Testbed) extensionPods(ctx context.Context) (pods, error) {
	return podsOf(ctx, fault.Target{Role: fault.Extension}, t.seed, client.InNamespace(ExtensionNamespace))
}

func podsOf(ctx context.Context, target fault.Target, c *cluster.Cluster, options ...client.ListOption) (pods, error) {
	api, err := client.New(c.RESTConfig(), client.Options{})
	if err != nil {
		return pods{}, fmt.Errorf("client for %s: %w", c.Name(), err)
	}
	list := &corev1.PodList{}
	if err := api.List(ctx, list, options...); err != nil {
		return pods{}, fmt.Errorf("list the pods of %s: %w", target, err)
	}
	if len(list.Items) == 0 {
		return pods{}, fmt.Errorf("%s has no pod", target)
	}
	return pods{target, c, api, list.Items}, nil
}

// kill deletes them without a grace period: their processes still get SIGTERM, and a moment by the kubelet, while whoever wants the
// pods makes new ones.
func (p pods) kill(ctx context.Context) error {
	var failed error
	for _, pod := range p.items {
		err := p.api.Delete(ctx, &pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		failed = errors.Join(failed, client.IgnoreNotFound(err))
	}
	return failed
}

// stopped stops their processes.
func (p pods) stopped(f fault.Fault) (injection, error) {
	return p.onTheirNodes(f, fault.StopPods, func(pod corev1.Pod) []string { return []string{pod.Namespace + "/" + pod.Name} })
}

// full leaves no room in their volumes.
func (p pods) full(f fault.Fault) (injection, error) {
	return p.onTheirNodes(f, fault.FillVolumes, volumesOf)
}

// onTheirNodes is a fault that the nodes of the pods bring about, with what it does to each pod.
func (p pods) onTheirNodes(f fault.Fault, way fault.Way, argument func(corev1.Pod) []string) (injection, error) {
	arguments := map[*cluster.Node][]string{}
	for _, pod := range p.items {
		node := nodeNamed(p.cluster, pod.Spec.NodeName)
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

// nodeNamed returns the node of the cluster with the name; nil if there is none.
func nodeNamed(c *cluster.Cluster, name string) *cluster.Node {
	for _, node := range c.Nodes() {
		if node.Name() == name {
			return node
		}
	}
	return nil
}
