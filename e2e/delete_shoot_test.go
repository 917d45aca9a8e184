//go:build e2e

package e2e

import (
	"context"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/timeline"
	"github.com/gardener-extensions/registry-cache/kind/operate"
)

// deleteShoot proves that deleting a shoot starts no clean-up of nodes: there are none left to be cleaned.
func deleteShoot() scenario {
	var watched *deletion
	return newScenario("delete-shoot",
		step{"alpha and beta are cached", cached(alpha, beta)},
		step{"gardenlet deletes the shoot", func(ctx context.Context, p *scenarioRun) {
			watched = watchDeletion(ctx, p)
			shoot, err := operate.ShootWithCaches(alpha, beta)
			p.Check(err)
			p.Check(p.suite.testbed.Gardenlet.Delete(ctx, shoot))
		}},
		step{"no cleaner ever existed", func(ctx context.Context, p *scenarioRun) { watched.proveNoCleaner(ctx, p) }},
		step{"the order was gardenlet's", func(ctx context.Context, p *scenarioRun) { watched.proveOrder(p) }},
		step{"the Extension and all ManagedResources for the shoot went in time", func(_ context.Context, p *scenarioRun) {
			watched.proveAllGone(p)
		}},
	)
}

// deletion is what was recorded from before the deletion on.
type deletion struct {
	nodes, configs, resources, extensions, daemonSets, namespaces *timeline.Recording
}

func watchDeletion(ctx context.Context, p *scenarioRun) *deletion {
	p.Helper()
	extensions, resources := extensionsv1alpha1.SchemeGroupVersion, resourcesv1alpha1.SchemeGroupVersion
	return &deletion{
		nodes:      p.Record(ctx, p.suite.shoot, corev1.SchemeGroupVersion.WithResource("nodes"), ""),
		daemonSets: p.Record(ctx, p.suite.shoot, appsv1.SchemeGroupVersion.WithResource("daemonsets"), ""),
		configs:    p.Record(ctx, p.suite.seed, extensions.WithResource("operatingsystemconfigs"), shootNamespace),
		extensions: p.Record(ctx, p.suite.seed, extensions.WithResource("extensions"), shootNamespace),
		namespaces: p.Record(ctx, p.suite.seed, corev1.SchemeGroupVersion.WithResource("namespaces"), ""),
		resources:  p.Record(ctx, p.suite.seed, resources.WithResource("managedresources"), ""),
	}
}

// proveNoCleaner closes both records by a fence, an object that comes after everything else, and looks through them.
func (d *deletion) proveNoCleaner(ctx context.Context, p *scenarioRun) {
	p.Helper()
	seen := 0
	for _, fenced := range []struct {
		recording *timeline.Recording
		cluster   access
		fence     client.Object
	}{
		{d.resources, p.suite.seed, resourceFence(metav1.NamespaceDefault)},
		{d.daemonSets, p.suite.shoot, daemonSetFence()},
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
