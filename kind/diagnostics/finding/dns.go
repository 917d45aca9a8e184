package finding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// dns reports a shoot without a DNS server. Caches then cannot resolve upstreams, which their
// answers do not say. Nodes have another resolver and are not affected.
func dns(b *bundle.Bundle) []Finding {
	if !b.Shoot.Known || b.Hibernated() {
		return nil
	}
	isDNS := func(s corev1.Service) bool { return s.Namespace == "kube-system" && s.Labels["k8s-app"] == "kube-dns" }
	i := slices.IndexFunc(b.Shoot.Services, isDNS)
	if i < 0 || len(endpoints(b, b.Shoot.Services[i])) == 0 {
		return nil
	}
	return []Finding{{
		Certain: true, File: b.Shoot.ObjectsFile("endpointslices"),
		Problem: "DNS does not work in the shoot, because the Service " + b.Shoot.Services[i].Name +
			" has no ready endpoint: caches cannot resolve their upstreams.",
		Fix: "check the pods of CoreDNS; the timeline shows when they were scaled or deleted",
	}}
}
