//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-extensions/registry-cache/e2e/timeline"
)

// cleaning proves that the nodes are cleaned before the caches of upstreams vanish. It begins before the removal.
type cleaning struct {
	pods, services *timeline.Recording
	// names of the Services and volume claims that must vanish, by upstream.
	names  map[string]string
	claims map[string][]string
}

// watchCleaning starts to record, from the present state on.
func watchCleaning(ctx context.Context, p *proof, hosts ...string) *cleaning {
	p.Helper()
	c := &cleaning{names: map[string]string{}, claims: map[string][]string{}}
	c.pods = p.Record(ctx, suite.shoot, corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceSystem)
	c.services = p.Record(ctx, suite.shoot, corev1.SchemeGroupVersion.WithResource("services"), metav1.NamespaceSystem)
	services := p.Services(ctx)
	for _, host := range hosts {
		service, ok := services[host]
		if !ok {
			p.Fatalf("%s has no Service to begin with", host)
		}
		c.names[host] = service.Name
		c.claims[host] = claimsOf(ctx, p, service.Name)
		if len(c.claims[host]) == 0 {
			p.Fatalf("%s has no volume claim to begin with", host)
		}
	}
	return c
}

// proveOrder proves that a pod of the cleaner did its work on every worker before the first of the Services vanished.
func (c *cleaning) proveOrder(ctx context.Context, p *proof) {
	p.Helper()
	vanished := c.awaitVanished(ctx, p)
	events, err := c.pods.Events()
	p.Check(err)
	for _, worker := range p.Workers() {
		cleaned, ok := timeline.First(events, func(e timeline.Event) bool { return ranOn(e, worker.Name()) })
		if !ok {
			p.Errorf("no pod of %s finished its init containers on %s", cleanerDaemonSet, worker.Name())
			continue
		}
		for _, host := range slices.Sorted(maps.Keys(vanished)) {
			if cleaned.Revision >= vanished[host].Revision {
				p.Errorf("%s was cleaned at revision %d, after %s's Service vanished at %d",
					worker.Name(), cleaned.Revision, host, vanished[host].Revision)
			}
		}
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("cleaner ran on %d of %d workers before the Service vanished", len(p.Workers()), len(p.Workers()))
}

// awaitVanished returns the events that say that the Services are gone.
func (c *cleaning) awaitVanished(ctx context.Context, p *proof) map[string]timeline.Event {
	p.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	vanished := map[string]timeline.Event{}
	for host, name := range c.names {
		event, err := c.services.Await(ctx, timeline.Deleted(name))
		if err != nil {
			p.Fatalf("the Service of %s did not vanish: %v", host, err)
		}
		vanished[host] = event
	}
	return vanished
}

// proveClaimsGone proves that the volumes of the upstreams are given back.
func (c *cleaning) proveClaimsGone(ctx context.Context, p *proof) {
	p.Helper()
	for host, claims := range c.claims {
		p.Await(ctx, fmt.Sprintf("the volume claims of %s are gone", host), 30*time.Second,
			func(ctx context.Context) (bool, string, error) {
				left, err := claimNames(ctx, func(name string) bool { return slices.Contains(claims, name) })
				return len(left) == 0, strings.Join(left, ", "), err
			})
		p.Evidence("%s's PVC gone", label(host))
	}
}

// ranOn tells whether the event shows a pod of the cleaner on the node that did its work: its init containers, which do
// it, ended with code 0.
func ranOn(e timeline.Event, node string) bool {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.Object.Object, pod); err != nil {
		return false
	}
	if !ownedBy(pod, "DaemonSet", cleanerDaemonSet) || pod.Spec.NodeName != node || len(pod.Status.InitContainerStatuses) == 0 {
		return false
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if status.State.Terminated == nil || status.State.Terminated.ExitCode != 0 {
			return false
		}
	}
	return true
}

func ownedBy(object metav1.Object, kind, name string) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == kind && owner.Name == name
}

// claimsOf returns the names of the volume claims of a StatefulSet: <template>-<set>-<ordinal>.
func claimsOf(ctx context.Context, p *proof, statefulSet string) []string {
	p.Helper()
	claims, err := claimNames(ctx, func(name string) bool { return strings.HasSuffix(name, "-"+statefulSet+"-0") })
	p.Check(err)
	return claims
}

func claimNames(ctx context.Context, keep func(string) bool) ([]string, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := suite.shoot.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list volume claims: %w", err)
	}
	var names []string
	for _, claim := range list.Items {
		if keep(claim.Name) {
			names = append(names, claim.Name)
		}
	}
	return names, nil
}
