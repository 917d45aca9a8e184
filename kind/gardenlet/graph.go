package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

// graph adds tasks to a flow the way gardenlet's flows do, and holds the parts that several flows share.
type graph struct {
	*flow.Graph
	// skip says that the tasks that are added keep their place in the order but do nothing.
	skip bool
}

func newGraph(name string) graph { return graph{Graph: flow.NewGraph(name)} }

// unless returns the graph for adding tasks that are skipped on the condition.
func (g graph) unless(condition bool) graph {
	return graph{Graph: g.Graph, skip: g.skip || condition}
}

// deploy adds a task that writes objects; it is tried again for a while if it fails.
func (g graph) deploy(name string, fn flow.TaskFn, dependencies ...flow.TaskIDer) flow.TaskID {
	return g.wait(name, deployed(fn), dependencies...)
}

// wait adds a task that bounds and retries itself.
func (g graph) wait(name string, fn flow.TaskFn, dependencies ...flow.TaskIDer) flow.TaskID {
	return g.Add(flow.Task{Name: name, Fn: fn, SkipIf: g.skip, Dependencies: flow.NewTaskIDs(dependencies...)})
}

// connect adds the beginning of the flow for creating and updating a shoot: namespace, referenced resources, gardener-resource-manager, and access to the
// shoot. It returns the task after which the shoot can be used.
func (g graph) connect(t tasks) flow.TaskIDer {
	namespace := g.deploy("Deploying Shoot namespace in Seed", t.deployNamespace)
	referenced := g.deploy("Deploying referenced resources", t.deployReferencedResources, namespace)
	awake := g.unless(t.hibernated)
	extensions := awake.deploy("Deploying extension resources before kube-apiserver", t.deployExtensionsBeforeKAPI, referenced)
	extensionsReady := awake.wait("Waiting until extension resources handled before kube-apiserver are ready",
		t.waitUntilExtensionsBeforeKAPIReady, extensions)
	manager := g.deploy("Deploying gardener-resource-manager", t.deployResourceManager, extensionsReady)
	managerReady := awake.wait("Waiting until gardener-resource-manager reports readiness", t.waitUntilResourceManagerReady, manager)
	return g.deploy("Deploying Gardener shoot access resources", t.deployShootAccess, managerReady)
}
