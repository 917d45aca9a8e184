package finding

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// caches compares the caches in the Extension's status with those in the shoot.
func caches(b *bundle.Bundle) []Finding {
	if !b.Shoot.Known || b.Hibernated() {
		return nil
	}
	all := slices.Concat(statefulSets(b), claims(b))
	services := b.Shoot.CacheServices()
	for _, cached := range b.Cached() {
		i := slices.IndexFunc(services, func(s corev1.Service) bool { return s.Annotations[v1alpha3.AnnotationUpstream] == cached.Upstream })
		if i < 0 {
			all = append(all, Finding{
				Certain: true, File: b.Shoot.ObjectsFile("services"),
				Problem: fmt.Sprintf("The cache of %s has no Service, although the Extension's status has its endpoint %s.", cached.Upstream,
					cached.Endpoint),
				Fix: "check gardener-resource-manager, which recreates it from the ManagedResource " +
					v1alpha3.ManagedResourceCaches + "; the timeline can show what deleted it",
			})
			continue
		}
		address := services[i].Spec.ClusterIP
		switch other := cacheAt(services, hostOf(cached.Endpoint)); {
		case hostOf(cached.Endpoint) == address:
		case other != "":
			all = append(all, Finding{
				Certain: true, File: b.Seed.ObjectsFile("extensions"),
				Problem: fmt.Sprintf("The Extension's status has %s for the cache of %s, which is the address of the cache of %s.",
					hostOf(cached.Endpoint), cached.Upstream, other),
				Details: []string{"the Service " + created(services[i])},
				Fix:     reconcile,
			})
		default:
			all = append(all, Finding{
				Certain: true, File: b.Shoot.ObjectsFile("services"),
				Problem: fmt.Sprintf("The Service of the cache of %s has the address %s, but the Extension's status has %s: "+
					"the Service was recreated after the last reconciliation.", cached.Upstream, address, hostOf(cached.Endpoint)),
				Details: []string{"the Service " + created(services[i])},
				Fix:     reconcile,
			})
		}
	}
	for _, service := range services {
		all = append(all, endpoints(b, service)...)
	}
	return all
}

// reconcile is the fix for addresses that are out of date.
const reconcile = "reconcile the Shoot (testbed shoot reconcile); if a node keeps the old address, see its journal of gardener-node-agent"

// cacheAt returns the upstream of the cache whose Service has the address, or "".
func cacheAt(services []corev1.Service, address string) string {
	for _, service := range services {
		if slices.Contains(service.Spec.ClusterIPs, address) {
			return service.Annotations[v1alpha3.AnnotationUpstream]
		}
	}
	return ""
}

// created describes the address and the age of a Service.
func created(service corev1.Service) string {
	return fmt.Sprintf("%s has %s and was created at %s", service.Name, service.Spec.ClusterIP,
		service.CreationTimestamp.UTC().Format(time.RFC3339))
}

func hostOf(endpoint string) string {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// statefulSets reports caches whose pods are not ready.
func statefulSets(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, set := range b.Shoot.StatefulSets {
		wanted := int32(1)
		if set.Spec.Replicas != nil {
			wanted = *set.Spec.Replicas
		}
		if set.Labels[v1alpha3.LabelUpstreamHost] == "" {
			continue
		}
		found := Finding{Certain: true, File: b.Shoot.ObjectsFile("pods")}
		pods := podsOf(b, set.Name)
		ready := int32(len(pods)) // #nosec G115 -- there are one or two
		for _, pod := range pods {
			if state := podState(pod); len(state) > 0 {
				ready--
				found.Details = append(found.Details, state...)
			}
		}
		if ready >= wanted {
			continue
		}
		found.Problem = fmt.Sprintf("The cache %s has %d ready pods of %d.", set.Name, ready, wanted)
		if len(pods) == 0 {
			found.Details = []string{"it has no pods"}
		}
		all = append(all, found)
	}
	return all
}

func podsOf(b *bundle.Bundle, set string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range b.Shoot.Pods {
		pod := &b.Shoot.Pods[i]
		if slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "StatefulSet" && o.Name == set }) {
			pods = append(pods, pod)
		}
	}
	return pods
}

func claims(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, claim := range b.Shoot.PersistentVolumeClaims {
		if claim.Status.Phase != corev1.ClaimBound {
			all = append(all, Finding{
				Certain: true, Problem: fmt.Sprintf("The PersistentVolumeClaim %s/%s is %s, not bound.", claim.Namespace, claim.Name,
					claim.Status.Phase),
				Fix: "see its events in shoot/events.txt", File: b.Shoot.ObjectsFile("persistentvolumeclaims"),
			})
		}
	}
	return all
}

// endpoints reports a Service without a ready endpoint. kube-proxy refuses connections to it.
func endpoints(b *bundle.Bundle, service corev1.Service) []Finding {
	for _, slice := range b.Shoot.EndpointSlices {
		if slice.Namespace != service.Namespace || slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				return nil
			}
		}
	}
	return []Finding{{
		Certain: true, File: b.Shoot.ObjectsFile("endpointslices"),
		Problem: fmt.Sprintf("The Service %s has no ready endpoint: connections to %s are refused.", service.Name, service.Spec.ClusterIP),
		Fix:     "see why its pods are not ready in " + b.Shoot.ObjectsFile("pods"),
	}}
}
