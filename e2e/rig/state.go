//go:build e2e

package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// identities lists the objects of the caches in a cluster with their UIDs, one per line:
// StatefulSets, Services, pods and volume claims. Two equal lists prove that nothing was recreated
// in between.
func identities(ctx context.Context, cluster Access) (string, error) {
	var lines []string
	add := func(kind string, object client.Object) {
		lines = append(lines, fmt.Sprintf("%s %s %s", kind, object.GetName(), object.GetUID()))
	}
	sets, services, pods, claims := &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{sets, services, pods} {
		if err := cluster.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
			return "", fmt.Errorf("list the objects of caches: %w", err)
		}
	}
	if err := cluster.List(ctx, claims, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return "", fmt.Errorf("list the volume claims of caches: %w", err)
	}
	for i := range sets.Items {
		add("StatefulSet", &sets.Items[i])
		for j := range claims.Items {
			if strings.HasSuffix(claims.Items[j].Name, "-"+sets.Items[i].Name+"-0") {
				add("PersistentVolumeClaim", &claims.Items[j])
			}
		}
	}
	for i := range services.Items {
		add("Service", &services.Items[i])
	}
	for i := range pods.Items {
		add("Pod", &pods.Items[i])
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// Identities lists the objects of the caches in a cluster with their UIDs. It fails the scenario if
// a kind is missing.
func (p *Run) Identities(ctx context.Context, cluster Access) string {
	p.Helper()
	found, err := identities(ctx, cluster)
	p.Check(err)
	for _, kind := range []string{"StatefulSet", "Service", "Pod", "PersistentVolumeClaim"} {
		if !strings.Contains("\n"+found, "\n"+kind+" ") {
			p.Fatalf("the cluster has no %s of a cache, so this proves nothing; found:\n%s", kind, found)
		}
	}
	return found
}

// Unchanged proves that no object of the caches was recreated.
func (p *Run) Unchanged(ctx context.Context, cluster Access, before string) {
	p.Helper()
	if after := p.Identities(ctx, cluster); after != before {
		p.Fatalf("objects of caches were recreated or deleted:\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

// WithoutPods returns the identities without pods: a pod that stops with its machine is recreated.
func WithoutPods(identities string) string { return WithoutKinds(identities, "Pod ") }

// ClaimsAndServices returns the identities of volume claims and Services, which hold data and
// addresses.
func ClaimsAndServices(identities string) string {
	return WithoutKinds(identities, "Pod ", "StatefulSet ")
}

// WithoutKinds returns the identities without lines that have one of the prefixes.
func WithoutKinds(identities string, kinds ...string) string {
	lines := strings.Split(identities, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(line, kind) })
	}), "\n")
}
