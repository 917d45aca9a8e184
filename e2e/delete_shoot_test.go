//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// deleteShoot proves that a shoot's deletion runs no cleaner and begins with the machines.
func deleteShoot() rig.Scenario {
	var watched *deletion
	return rig.New("delete-shoot",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("gardenlet deletes the shoot", func(ctx context.Context, p *rig.Run) {
			watched = watchDeletion(ctx, p)
			shoot, err := cachetest.Shoot(rig.Alpha, rig.Beta)
			p.Check(err)
			p.Check(p.Session.Testbed.Gardenlet.Delete(ctx, shoot))
		}),

		rig.Prove("no cleaner ever existed", func(ctx context.Context, p *rig.Run) { watched.proveNoCleaner(ctx, p) }),
		rig.Prove("gardenlet deletes machines, then their configuration, then the Extension", func(ctx context.Context, p *rig.Run) { watched.proveOrder(p) }),
		rig.Prove("the Extension and all ManagedResources for the shoot are gone before the namespace is deleted", func(_ context.Context, p *rig.Run) {
			watched.proveAllGone(p)
		}),
	)
}

// deletion contains recordings that started before gardenlet deleted the shoot.
type deletion struct {
	nodes, configs, resources, extensions, daemonSets, namespaces *rig.Recording
}

func watchDeletion(ctx context.Context, p *rig.Run) *deletion {
	p.Helper()
	extensions, resources := extensionsv1alpha1.SchemeGroupVersion, resourcesv1alpha1.SchemeGroupVersion
	return &deletion{
		nodes:      p.Record(ctx, p.Session.Shoot, corev1.SchemeGroupVersion.WithResource("nodes"), ""),
		daemonSets: p.Record(ctx, p.Session.Shoot, appsv1.SchemeGroupVersion.WithResource("daemonsets"), ""),
		configs:    p.Record(ctx, p.Session.Seed, extensions.WithResource("operatingsystemconfigs"), rig.ShootNamespace),
		extensions: p.Record(ctx, p.Session.Seed, extensions.WithResource("extensions"), rig.ShootNamespace),
		namespaces: p.Record(ctx, p.Session.Seed, corev1.SchemeGroupVersion.WithResource("namespaces"), ""),
		resources:  p.Record(ctx, p.Session.Seed, resources.WithResource("managedresources"), ""),
	}
}

// proveNoCleaner proves that no recording contains a cleaner. To be sure that a recording is
// complete, it creates one more object, the fence, and waits for this object's event.
func (d *deletion) proveNoCleaner(ctx context.Context, p *rig.Run) {
	p.Helper()
	seen := 0
	for _, fenced := range []struct {
		recording *rig.Recording
		cluster   rig.Access
		fence     client.Object
	}{
		{d.resources, p.Session.Seed, rig.ResourceFence(metav1.NamespaceDefault)},
		{d.daemonSets, p.Session.Shoot, rig.DaemonSetFence()},
	} {
		events := rig.RaiseFence(ctx, p, fenced.recording, fenced.cluster, fenced.fence)
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

// originLabel distinguishes Gardener's own ManagedResources from those of extensions.
const originLabel = "origin"

// extensionFinalizer is the finalizer that the extension sets. The extension removes this finalizer
// after it has deleted all objects that it created.
const extensionFinalizer = "extensions.gardener.cloud/registry-cache"

// proveOrder proves gardenlet's order (reconciler_delete.go of Gardener v1.150.0): machines, then
// OperatingSystemConfigs and Gardener's ManagedResources, then the Extension. Each stage ends
// before the next one begins.
func (d *deletion) proveOrder(p *rig.Run) {
	p.Helper()
	machines := deletions(p, d.nodes, func(e rig.Event) bool { return isWorker(p, e.Object.GetName()) })
	configs := deletions(p, d.configs, func(rig.Event) bool { return true })
	resources := deletions(p, d.resources, func(e rig.Event) bool {
		return e.Object.GetNamespace() == rig.ShootNamespace && e.Object.GetLabels()[originLabel] == "gardener"
	})
	extension := deletions(p, d.extensions, rig.Named(v1alpha3.ExtensionType))

	for what, stage := range map[string]stage{"OperatingSystemConfig": configs, "ManagedResource of gardener": resources} {
		// Revisions of shoot and seed cannot be compared, so compare when the events arrived.
		if !machines.last.Seen.Before(stage.first.Seen) {
			p.Errorf("a %s was deleted before the last machine", what)
		}
		if stage.last.Revision >= extension.first.Revision {
			p.Errorf("the Extension was deleted before the last %s", what)
		}
	}
	// The deletion event contains the last state of the object before its last finalizer was removed.
	if finalizers := extension.last.Object.GetFinalizers(); !slices.Contains(finalizers, extensionFinalizer) {
		p.Errorf("the Extension was deleted without the extension's finalizer, with %v", finalizers)
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("order: %d machines, then %d OSCs and %d MRs of gardener, then the Extension", machines.count, configs.count, resources.count)
}

// proveAllGone proves that the Extension and all ManagedResources for the shoot were gone when
// gardenlet began to delete the namespace. Later deletions prove nothing, because they can be part
// of the namespace's deletion.
func (d *deletion) proveAllGone(p *rig.Run) {
	p.Helper()
	namespace := deletions(p, d.namespaces, rig.Named(rig.ShootNamespace))
	extension := deletions(p, d.extensions, rig.Named(v1alpha3.ExtensionType))
	caches := deletions(p, d.resources, rig.Named(v1alpha3.ManagedResourceCaches))
	all := deletions(p, d.resources, isForShoot)
	for what, stage := range map[string]stage{
		"the Extension": extension, "ManagedResource " + v1alpha3.ManagedResourceCaches: caches, "the last ManagedResource without class": all,
	} {
		if stage.last.Revision >= namespace.first.Revision {
			p.Errorf("%s was not gone before the namespace was deleted", what)
		}
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("Extension and all %d class-less ManagedResources gone before the namespace", all.count)
}

// isForShoot reports whether the ManagedResource has no class and is in the shoot's namespace.
func isForShoot(e rig.Event) bool {
	class, _, _ := unstructured.NestedString(e.Object.Object, "spec", "class")
	return class == "" && e.Object.GetNamespace() == rig.ShootNamespace
}

// stage is the deletion of a group of objects, from the first request until the last object is
// gone.
type stage struct {
	first, last rig.Event
	count       int
}

// deletions returns the stage of the objects that match. The scenario fails if no matching object
// was deleted, or if one is left.
func deletions(p *rig.Run, recording *rig.Recording, match func(rig.Event) bool) stage {
	p.Helper()
	all, err := recording.Events()
	p.Check(err)
	events := rig.SelectEvents(all, match)
	alive := map[string]bool{}
	var s stage
	for _, event := range events {
		name := event.Object.GetName()
		alive[name] = event.Type != watch.Deleted
		if event.Type != watch.Deleted && event.Object.GetDeletionTimestamp() == nil {
			continue
		}
		if s.count == 0 && s.first.Object == nil {
			s.first = event
		}
		if event.Type == watch.Deleted {
			s.last = event
			s.count++
		}
	}
	for name, exists := range alive {
		if exists {
			p.Fatalf("%s is left after the deletion", name)
		}
	}
	if s.count == 0 {
		p.Fatalf("no deletion was recorded, so this proves nothing (%d events)", len(events))
	}
	return s
}

func isWorker(p *rig.Run, name string) bool {
	return slices.ContainsFunc(p.Workers(), func(worker *cluster.Node) bool { return worker.Name() == name })
}
