package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

// graph adds tasks to a flow in the way of gardenlet's flows. It also has the parts that several
// flows share.
type graph struct {
	*flow.Graph
	// skip means that added tasks keep their place in the order but do nothing.
	skip bool
}

func newGraph(name string) graph { return graph{Graph: flow.NewGraph(name)} }

// unless returns a graph whose added tasks are skipped if condition is true.
func (g graph) unless(condition bool) graph {
	return graph{Graph: g.Graph, skip: g.skip || condition}
}

// deploy adds a task that writes objects. If it fails, it is retried for a while.
func (g graph) deploy(name string, fn flow.TaskFn, dependencies ...flow.TaskIDer) flow.TaskID {
	return g.wait(name, fn.RetryUntilTimeout(deployInterval, deployTimeout), dependencies...)
}

// wait adds a task that has its own timeout and retries.
func (g graph) wait(name string, fn flow.TaskFn, dependencies ...flow.TaskIDer) flow.TaskID {
	return g.Add(flow.Task{Name: name, Fn: fn, SkipIf: g.skip, Dependencies: flow.NewTaskIDs(dependencies...)})
}

// connect adds the start of the flow for creating and updating a shoot: namespace, referenced
// resources, gardener-resource-manager, and access to the shoot. It returns the task after which
// the shoot is accessible.
func (g graph) connect(t tasks) flow.TaskIDer {
	namespace := g.deploy("Deploying Shoot namespace in Seed", t.deployNamespace)
	referenced := g.deploy("Deploying referenced resources", t.deployReferencedResources, namespace)
	running := g.unless(t.hibernated)
	extensions := running.deploy("Deploying extension resources before kube-apiserver", t.deployExtensionsBeforeKAPI, referenced)
	extensionsReady := running.wait("Waiting until extension resources handled before kube-apiserver are ready",
		t.waitUntilExtensionsBeforeKAPIReady, extensions)
	manager := g.deploy("Deploying gardener-resource-manager", t.deployResourceManager, extensionsReady)
	managerReady := running.wait("Waiting until gardener-resource-manager reports readiness", t.waitUntilResourceManagerReady, manager)
	return g.deploy("Deploying Gardener shoot access resources", t.deployShootAccess, managerReady)
}
