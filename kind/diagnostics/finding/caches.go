package finding

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

const reconcile = "reconcile the Shoot (testbed shoot reconcile); if a node keeps the old address, see its journal of gardener-node-agent"

func caches(b *bundle.Bundle) []Finding {
	if !b.Shoot.Known {
		return nil
	}
	all := slices.Concat(statefulSets(b), claims(b))
	services := b.Shoot.CacheServices()
	for _, cached := range b.Cached() {
		service, exists := b.Shoot.CacheService(cached.Upstream)
		if !exists {
			all = append(all, problem(b.Shoot.ObjectsFile("services"),
				"check gardener-resource-manager, which recreates it from the ManagedResource "+
					v1alpha3.ManagedResourceServices+"; the timeline can show what deleted it",
				"The cache of %s has no Service, although the Extension's status has its endpoint %s.", cached.Upstream, cached.Endpoint))
			continue
		}
		address, wanted := service.Spec.ClusterIP, hostOf(cached.Endpoint)
		if address == wanted {
			continue
		}
		found := problem(b.Shoot.ObjectsFile("services"), reconcile, "The Service of the cache of %s has the address %s, but the Extension's "+
			"status has %s: the Service was recreated after the last reconciliation.", cached.Upstream, address, wanted)
		if other := cacheAt(services, wanted); other != "" {
			found = problem(b.Seed.ObjectsFile("extensions"), reconcile,
				"The Extension's status has %s for the cache of %s, which is the address of the cache of %s.", wanted, cached.Upstream, other)
		}
		all = append(all, found.with("the Service "+created(service)))
	}
	for _, service := range services {
		all = append(all, endpoints(b, service)...)
	}
	return all
}

// cacheAt returns the upstream of the cache whose Service has the address, or "".
func cacheAt(services []corev1.Service, address string) string {
	for _, service := range services {
		if slices.Contains(service.Spec.ClusterIPs, address) {
			return service.Annotations[v1alpha3.AnnotationUpstream]
		}
	}
	return ""
}

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

func statefulSets(b *bundle.Bundle) (all []Finding) {
	for _, set := range b.Shoot.StatefulSets {
		if set.Labels[v1alpha3.LabelUpstreamHost] == "" {
			continue
		}
		ready, details := int32(0), []string{}
		for _, pod := range b.Shoot.Pods {
			if !slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "StatefulSet" && o.Name == set.Name }) {
				continue
			}
			state := podState(&pod)
			if len(state) == 0 {
				ready++
			}
			details = append(details, state...)
		}
		wanted := ptr.Deref(set.Spec.Replicas, 1)
		if ready >= wanted {
			continue
		}
		if ready == 0 && len(details) == 0 {
			details = []string{"it has no pods"}
		}
		all = append(all, problem(b.Shoot.ObjectsFile("pods"), "", "The cache %s has %d ready pods of %d.", set.Name, ready, wanted).with(details...))
	}
	return all
}

func claims(b *bundle.Bundle) (all []Finding) {
	for _, claim := range b.Shoot.PersistentVolumeClaims {
		if claim.Status.Phase != corev1.ClaimBound {
			all = append(all, problem(b.Shoot.ObjectsFile("persistentvolumeclaims"), "see its events in shoot/events.txt",
				"The PersistentVolumeClaim %s/%s is %s, not bound.", claim.Namespace, claim.Name, claim.Status.Phase))
		}
	}
	return all
}

// endpoints reports a Service that has no ready endpoints: connections to it are refused.
func endpoints(b *bundle.Bundle, service corev1.Service) []Finding {
	for _, slice := range b.Shoot.EndpointSlices {
		if slice.Namespace != service.Namespace || slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				return nil
			}
		}
	}
	return []Finding{problem(b.Shoot.ObjectsFile("endpointslices"), "see why its pods are not ready in "+b.Shoot.ObjectsFile("pods"),
		"The Service %s has no ready endpoint: connections to %s are refused.", service.Name, service.Spec.ClusterIP)}
}

// dns reports a shoot without a DNS server. Caches then cannot resolve upstreams, but their answers
// do not name this cause. Nodes use another resolver and are not affected.
func dns(b *bundle.Bundle) []Finding {
	isDNS := func(s corev1.Service) bool { return s.Namespace == "kube-system" && s.Labels["k8s-app"] == "kube-dns" }
	i := slices.IndexFunc(b.Shoot.Services, isDNS)
	if !b.Shoot.Known || i < 0 || len(endpoints(b, b.Shoot.Services[i])) == 0 {
		return nil
	}
	return []Finding{problem(b.Shoot.ObjectsFile("endpointslices"),
		"check the pods of CoreDNS; the timeline shows when they were scaled or deleted",
		"DNS does not work in the shoot, because the Service %s has no ready endpoint: caches cannot resolve their upstreams.",
		b.Shoot.Services[i].Name)}
}
