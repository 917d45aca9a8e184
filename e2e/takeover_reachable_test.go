//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// denyAll is Gardener's policy that isolates every pod in kube-system of a Shoot.
const denyAll = "gardener.cloud--deny-all"

// outside stands for the address of a node: an address that belongs to no pod.
const outside = "192.0.2.1"

// reachable contains the recordings that prove that NetworkPolicies never kept nodes from a cache.
type reachable struct {
	policies, pods *rig.Recording
	// since is a revision. prove checks the policies after each event with a higher revision.
	since uint64
}

// watchReachable starts to record NetworkPolicies and pods in kube-system of the shoot.
func watchReachable(ctx context.Context, p *rig.Run) *reachable {
	p.Helper()
	r := &reachable{
		policies: p.Record(ctx, p.Session.Shoot, networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), metav1.NamespaceSystem),
		pods:     p.Record(ctx, p.Session.Shoot, corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceSystem),
	}
	for _, event := range r.events(p) {
		r.since = max(r.since, event.Revision)
	}
	return r
}

// events returns the events of both recordings in the order of the changes.
func (r *reachable) events(p *rig.Run) []rig.Event {
	p.Helper()
	policies, err := r.policies.Events()
	p.Check(err)
	pods, err := r.pods.Events()
	p.Check(err)
	return slices.SortedFunc(slices.Values(slices.Concat(policies, pods)), func(a, b rig.Event) int { return cmp.Compare(a.Revision, b.Revision) })
}

// prove fails the scenario if a node could not connect to a cache of the upstreams. It evaluates
// the policies after each change to a policy or a pod, for all pods of caches that were running and
// were not being deleted.
func (r *reachable) prove(p *rig.Run, hosts ...string) {
	p.Helper()
	node, err := rig.AddressPeer(outside)
	p.Check(err)
	all := r.events(p)
	policies, pods := map[string]networkingv1.NetworkPolicy{}, map[string]*corev1.Pod{}
	isolated, checked := false, 0
	for _, event := range all {
		p.Check(apply(event, policies, pods))
		if _, found := policies[denyAll]; found {
			isolated = true
		}
		if event.Revision <= r.since {
			continue
		}
		rules := rig.NetworkRules{Policies: slices.Collect(maps.Values(policies))}
		for _, pod := range pods {
			if !slices.Contains(hosts, pod.Labels[v1alpha3.LabelUpstreamHost]) || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
				continue
			}
			checked++
			if err := rules.Enters(node, rig.PodPeer(pod), rig.TCP(v1alpha3.CachePort)); err != nil {
				p.Errorf("at %s, after %s of %s %s: %v", event.Seen.Format("15:04:05.0"), event.Type, event.Object.GetKind(), event.Object.GetName(), err)
			}
		}
	}
	if !isolated || checked == 0 {
		p.Errorf("no policy %s, or no cache, was recorded, so this proves nothing", denyAll)
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("%d changes to policies and pods: nodes could reach each cache at all times", len(all))
}

// proveSince is like prove, but covers only the time since the policy was last created.
func (r *reachable) proveSince(p *rig.Run, policy string, hosts ...string) {
	p.Helper()
	for _, event := range r.events(p) {
		if event.Type == watch.Added && event.Object.GetName() == policy && event.Revision > r.since {
			r.since = event.Revision - 1
		}
	}
	r.prove(p, hosts...)
}

// apply applies the event to the policies or to the pods of caches, which are maps by name.
func apply(event rig.Event, policies map[string]networkingv1.NetworkPolicy, pods map[string]*corev1.Pod) error {
	name := event.Object.GetName()
	if event.Object.GetKind() == "Pod" {
		if _, cache := event.Object.GetLabels()[v1alpha3.LabelUpstreamHost]; !cache {
			return nil
		}
		pod := &corev1.Pod{}
		if delete(pods, name); event.Type == watch.Deleted {
			return nil
		}
		pods[name] = pod
		return convert(event.Object, pod)
	}
	if delete(policies, name); event.Type == watch.Deleted {
		return nil
	}
	policy := networkingv1.NetworkPolicy{}
	err := convert(event.Object, &policy)
	policies[name] = policy
	return err
}

func convert(from *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		return fmt.Errorf("decode %s %s: %w", from.GetKind(), from.GetName(), err)
	}
	return nil
}
