package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

// graph adds tasks to a flow the way gardenlet's flows do, and holds the parts that several flows share.
type graph struct{ *flow.Graph }

// deploy adds a task that writes objects; it is tried again for a while if it fails.
func (g graph) deploy(name string, fn flow.TaskFn, dependencies ...flow.TaskIDer) flow.TaskID {
	return g.wait(name, deployed(fn), dependencies...)
}

// wait adds a task that bounds and retries itself.
func (g graph) wait(name string, fn flow.TaskFn, dependencies ...flow.TaskIDer) flow.TaskID {
	return g.Add(flow.Task{Name: name, Fn: fn, Dependencies: flow.NewTaskIDs(dependencies...)})
}

// connect adds the beginning of every flow: namespace, referenced resources, gardener-resource-manager, and access to the
// shoot. It returns the task after which the shoot can be used.
func (g graph) connect(t tasks) flow.TaskIDer {
	namespace := g.deploy("Deploying Shoot namespace in Seed", t.deployNamespace)
	referenced := g.deploy("Deploying referenced resources", t.deployReferencedResources, namespace)
	extensions := g.deploy("Deploying extension resources before kube-apiserver", t.deployExtensionsBeforeKAPI, referenced)
	extensionsReady := g.wait("Waiting until extension resources handled before kube-apiserver are ready",
		t.waitUntilExtensionsBeforeKAPIReady, extensions)
	manager := g.deploy("Deploying gardener-resource-manager", t.deployResourceManager, extensionsReady)
	managerReady := g.wait("Waiting until gardener-resource-manager reports readiness", t.waitUntilResourceManagerReady, manager)
	return g.deploy("Deploying Gardener shoot access resources", t.deployShootAccess, managerReady)
}
