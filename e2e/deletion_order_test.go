//go:build e2e

package e2e

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gardener-extensions/registry-cache/e2e/timeline"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// originLabel tells gardener's own ManagedResources from those of extensions.
const originLabel = "origin"

// extensionFinalizer is the one of our extension: it goes when the extension has done its part of the deletion.
const extensionFinalizer = "extensions.gardener.cloud/" + extensionName

// proveOrder proves gardenlet's order (reconciler_delete.go of Gardener v1.147.1): machines, then OperatingSystemConfigs
// and gardener's ManagedResources, then the Extension. Each stage is over before the next one begins.
func (d *deletion) proveOrder(p *proof) {
	p.Helper()
	machines := deletions(p, d.nodes, func(e timeline.Event) bool { return isWorker(p, e.Object.GetName()) })
	configs := deletions(p, d.configs, func(timeline.Event) bool { return true })
	resources := deletions(p, d.resources, func(e timeline.Event) bool {
		return e.Object.GetNamespace() == shootNamespace && e.Object.GetLabels()[originLabel] == "gardener"
	})
	extension := deletions(p, d.extensions, timeline.Named(extensionName))

	for what, stage := range map[string]stage{"OperatingSystemConfig": configs, "ManagedResource of gardener": resources} {
		// Machines are the shoot's, the rest is the seed's: only the time of arrival compares them.
		if !machines.last.Seen.Before(stage.first.Seen) {
			p.Errorf("a %s was deleted before the last machine was gone", what)
		}
		if stage.last.Revision >= extension.first.Revision {
			p.Errorf("the Extension was deleted before the last %s was gone", what)
		}
	}
	// A deleted object is last seen as it was before its last finalizer went.
	if finalizers := extension.last.Object.GetFinalizers(); !slices.Contains(finalizers, extensionFinalizer) {
		p.Errorf("the Extension vanished without having had our finalizer: %v", finalizers)
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("order: %d machines, then %d OSCs and %d MRs of gardener, then the Extension", machines.count, configs.count, resources.count)
}

// proveAllGone proves that the extension released its Extension and that no ManagedResource for the shoot was left when
// gardenlet began to delete the namespace: what is gone later proves nothing, the namespace takes it along.
func (d *deletion) proveAllGone(p *proof) {
	p.Helper()
	namespace := deletions(p, d.namespaces, timeline.Named(shootNamespace))
	extension := deletions(p, d.extensions, timeline.Named(extensionName))
	caches := deletions(p, d.resources, timeline.Named(cachesManagedResource))
	all := deletions(p, d.resources, isForShoot)
	for what, stage := range map[string]stage{
		"the Extension": extension, "ManagedResource " + cachesManagedResource: caches, "the last ManagedResource without class": all,
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

// isForShoot tells whether the object is a ManagedResource without class in the shoot's namespace.
func isForShoot(e timeline.Event) bool {
	class, _, _ := unstructured.NestedString(e.Object.Object, "spec", "class")
	return class == "" && e.Object.GetNamespace() == shootNamespace
}

// stage is the deletion of a group of objects: from the first request to delete one until the last one is gone.
type stage struct {
	first, last timeline.Event
	count       int
}

// deletions returns the stage of the objects that match; it is a failure when there is none, or when one is left.
func deletions(p *proof, recording *timeline.Recording, match func(timeline.Event) bool) stage {
	p.Helper()
	all, err := recording.Events()
	p.Check(err)
	events := timeline.Select(all, match)
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
		p.Fatalf("no deletion was recorded: this would prove nothing (%d events)", len(events))
	}
	return s
}

func isWorker(p *proof, name string) bool {
	return slices.ContainsFunc(p.Workers(), func(worker *cluster.Node) bool { return worker.Name() == name })
}
