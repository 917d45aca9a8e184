package finding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// dns reports a shoot without a DNS server: caches find no upstream then, and what they answer does not say so. Nodes have a
// resolver of their own, and go on.
func dns(b *bundle.Bundle) []Finding {
	if !b.Shoot.Known || b.Sleeps() {
		return nil
	}
	isDNS := func(s corev1.Service) bool { return s.Namespace == "kube-system" && s.Labels["k8s-app"] == "kube-dns" }
	i := slices.IndexFunc(b.Shoot.Services, isDNS)
	if i < 0 || len(endpoints(b, b.Shoot.Services[i])) == 0 {
		return nil
	}
	return []Finding{{
		Certain: true, File: b.Shoot.ObjectsFile("endpointslices"),
		Problem: "Nobody answers DNS in the shoot: the Service " + b.Shoot.Services[i].Name + " has no ready endpoint. Caches do not find their upstreams.",
		Fix:     "see what became of the pods of CoreDNS; the timeline has who scaled or deleted them, and when",
	}}
}
