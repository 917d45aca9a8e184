//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/e2e/timeline"
	"github.com/gardener-extensions/registry-cache/kind"
)

// deleteShoot proves that deleting a shoot starts no clean-up of nodes: there are none left to be cleaned.
func deleteShoot() features.Feature {
	var watched *deletion
	return scenario("delete-shoot",
		step{"alpha and beta are cached", cached(alpha, beta)},
		step{"gardenlet deletes the shoot", func(ctx context.Context, p *proof) {
			watched = watchDeletion(ctx, p)
			shoot, err := kind.ShootWithCaches(alpha, beta)
			p.Check(err)
			p.Check(suite.testbed.Gardenlet().Delete(ctx, shoot))
		}},
		step{"no cleaner ever existed", func(ctx context.Context, p *proof) { watched.proveNoCleaner(ctx, p) }},
		step{"the order was gardenlet's", func(ctx context.Context, p *proof) { watched.proveOrder(p) }},
		step{"the Extension and all ManagedResources of the shoot are gone", func(ctx context.Context, p *proof) {
			list := &resourcesv1alpha1.ManagedResourceList{}
			p.Check(suite.seed.List(ctx, list, client.InNamespace(shootNamespace)))
			for _, resource := range list.Items {
				if hasNoClass(resource) {
					p.Errorf("ManagedResource %s without class is left", resource.Name)
				}
			}
			p.Gone(ctx, suite.seed, &extensionsv1alpha1.Extension{
				ObjectMeta: metav1.ObjectMeta{Namespace: shootNamespace, Name: extensionName},
			})
			p.Evidence("Extension gone, no class-less ManagedResource left")
		}},
	)
}

// deletion is what was recorded from before the deletion on.
type deletion struct {
	nodes, configs, resources, extensions, daemonSets *timeline.Recording
}

func watchDeletion(ctx context.Context, p *proof) *deletion {
	p.Helper()
	extensions, resources := extensionsv1alpha1.SchemeGroupVersion, resourcesv1alpha1.SchemeGroupVersion
	return &deletion{
		nodes:      p.Record(ctx, suite.shoot, corev1.SchemeGroupVersion.WithResource("nodes"), ""),
		daemonSets: p.Record(ctx, suite.shoot, appsv1.SchemeGroupVersion.WithResource("daemonsets"), ""),
		configs:    p.Record(ctx, suite.seed, extensions.WithResource("operatingsystemconfigs"), shootNamespace),
		extensions: p.Record(ctx, suite.seed, extensions.WithResource("extensions"), shootNamespace),
		resources:  p.Record(ctx, suite.seed, resources.WithResource("managedresources"), ""),
	}
}

// proveNoCleaner closes both records by a fence, an object that comes after everything else, and looks through them.
func (d *deletion) proveNoCleaner(ctx context.Context, p *proof) {
	p.Helper()
	seen := 0
	for _, fenced := range []struct {
		recording *timeline.Recording
		cluster   access
		fence     client.Object
	}{
		{d.resources, suite.seed, resourceFence()},
		{d.daemonSets, suite.shoot, daemonSetFence()},
	} {
		events := raiseFence(ctx, p, fenced.recording, fenced.cluster, fenced.fence)
		for _, event := range events {
			if name := event.Object.GetName(); strings.Contains(name, "cleaner") {
				p.Errorf("%s %s existed: %s at revision %d", event.Object.GetKind(), name, event.Type, event.Revision)
			}
		}
		seen += len(events)
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("no cleaner in any of %d events of ManagedResources and DaemonSets", seen)
}

// raiseFence creates the object, waits until the recording has seen it, and returns all events up to then.
func raiseFence(ctx context.Context, p *proof, recording *timeline.Recording, cluster access, fence client.Object) []timeline.Event {
	p.Helper()
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(cluster.Delete(ctx, fence)) })
	p.Check(cluster.Create(ctx, fence))
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Second, fmt.Errorf("waited 15s for the event of %s", fence.GetName()))
	defer cancel()
	_, err := recording.Await(ctx, timeline.Named(fence.GetName()))
	p.Check(err)
	events, err := recording.Events()
	p.Check(err)
	return events
}

// resourceFence is a ManagedResource of a class that no resource manager is responsible for.
func resourceFence() client.Object {
	return &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-fence-", Namespace: metav1.NamespaceDefault},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			Class: ptr.To("e2e-nobody"), SecretRefs: []corev1.LocalObjectReference{{Name: "none"}},
		},
	}
}

// daemonSetFence is a DaemonSet that fits no node.
func daemonSetFence() client.Object {
	labels := map[string]string{"app": "e2e-fence"}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-fence-", Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"e2e-fence": "no-node"},
					Containers:   []corev1.Container{{Name: "none", Image: "registry-cache.testbed/none"}},
				},
			},
		},
	}
}
