package cache

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestLandscapeOfTheOriginal: the NetworkPolicy of gardener-extension-registry-cache selects pods
// by this label. It lets nodes reach the caches when that extension replaces this one. The
// annotation of its Services contains the scheme for nodes.
func TestLandscapeOfTheOriginal(t *testing.T) {
	for name, rendering := range renderings() {
		t.Run(name, func(t *testing.T) {
			objects := rendering.render(t)
			if got := rendering.statefulSet(t).Spec.Template.Labels["app.kubernetes.io/name"]; got != "registry-cache" {
				t.Errorf("pods have app.kubernetes.io/name %q", got)
			}
			want := "http"
			if rendering.cache.HTTP != nil && rendering.cache.HTTP.TLS {
				want = "https"
			}
			if got := get[*corev1.Service](t, objects).Annotations["scheme"]; got != want {
				t.Errorf("the Service's annotation scheme is %q, want %q", got, want)
			}
		})
	}
}

// TestOnlyNodesThatRunTheImage: an image of one architecture must not run on nodes of another.
func TestOnlyNodesThatRunTheImage(t *testing.T) {
	for name, rendering := range renderings() {
		t.Run(name, func(t *testing.T) {
			var got []string
			pod := rendering.statefulSet(t).Spec.Template.Spec
			if a := pod.Affinity; a != nil && a.NodeAffinity != nil {
				requirement := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
				if requirement.Key != "kubernetes.io/arch" || requirement.Operator != corev1.NodeSelectorOpIn {
					t.Errorf("nodes are selected by %v", requirement)
				}
				got = requirement.Values
			}
			if !slices.Equal(got, rendering.shoot.Architectures) {
				t.Errorf("the pods need nodes of %v, want %v", got, rendering.shoot.Architectures)
			}
			if isHighlyAvailable(rendering.cache) && (pod.Affinity == nil || pod.Affinity.PodAntiAffinity == nil) {
				t.Error("the replicas do not avoid each other")
			}
		})
	}
}
