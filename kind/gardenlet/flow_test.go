package gardenlet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gardener/gardener/pkg/component/extensions/extension"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig"
	"github.com/gardener/gardener/pkg/utils/flow"
)

// journal records the tasks that ran, in the order in which they ended.
type journal struct {
	mutex sync.Mutex
	ended []string
	// instead maps the name of a task to the function that replaces it.
	instead map[string]flow.TaskFn
}

func (j *journal) task(name string) flow.TaskFn {
	return func(ctx context.Context) error {
		if replacement, ok := j.instead[name]; ok {
			if err := replacement(ctx); err != nil {
				return err
			}
		}
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.ended = append(j.ended, name)
		return nil
	}
}

// tasks returns tasks that do nothing but record that they ran.
func (j *journal) tasks() tasks {
	return tasks{
		extensions: journalExtensions{journal: j}, configs: journalConfigs{journal: j},

		deployNamespace:                       j.task("deployNamespace"),
		deleteNamespace:                       j.task("deleteNamespace"),
		waitUntilNamespaceDeleted:             j.task("waitUntilNamespaceDeleted"),
		restoreSecrets:                        j.task("restoreSecrets"),
		deployReferencedResources:             j.task("deployReferencedResources"),
		destroyReferencedResources:            j.task("destroyReferencedResources"),
		deployResourceManager:                 j.task("deployResourceManager"),
		waitUntilResourceManagerReady:         j.task("waitUntilResourceManagerReady"),
		destroyResourceManager:                j.task("destroyResourceManager"),
		deployShootAccess:                     j.task("deployShootAccess"),
		deployExtensionsBeforeKAPI:            j.task("deployExtensionsBeforeKAPI"),
		deployExtensions:                      j.task("deployExtensions"),
		deployExtensionsAfterWorker:           j.task("deployExtensionsAfterWorker"),
		deployOperatingSystemConfig:           j.task("deployOperatingSystemConfig"),
		deployNodeAgentResources:              j.task("deployNodeAgentResources"),
		deploySystemResources:                 j.task("deploySystemResources"),
		waitUntilOperatingSystemConfigApplied: j.task("waitUntilOperatingSystemConfigApplied"),
		deployWorker:                          j.task("deployWorker"),
		waitUntilWorkerReady:                  j.task("waitUntilWorkerReady"),
		destroyWorker:                         j.task("destroyWorker"),
		waitUntilWorkerGone:                   j.task("waitUntilWorkerGone"),
		deleteManagedResources:                j.task("deleteManagedResources"),
		waitUntilManagedResourcesDeleted:      j.task("waitUntilManagedResourcesDeleted"),
		waitUntilShootManagedResourcesDeleted: j.task("waitUntilShootManagedResourcesDeleted"),
		deleteCluster:                         j.task("deleteCluster"),

		hibernateControlPlane:               j.task("hibernateControlPlane"),
		keepManagedResources:                j.task("keepManagedResources"),
		persistShootState:                   j.task("persistShootState"),
		deleteShootState:                    j.task("deleteShootState"),
		deleteExtensionObjects:              j.task("deleteExtensionObjects"),
		waitUntilExtensionObjectsDeleted:    j.task("waitUntilExtensionObjectsDeleted"),
		dropManagedResources:                j.task("dropManagedResources"),
		forceDeleteManagedResources:         j.task("forceDeleteManagedResources"),
		waitUntilAllManagedResourcesDeleted: j.task("waitUntilAllManagedResourcesDeleted"),
		deleteKubernetesResources:           j.task("deleteKubernetesResources"),
	}
}

// journalExtensions and journalConfigs record the calls of gardenlet's components.
type (
	journalExtensions struct {
		extension.Interface
		journal *journal
	}
	journalConfigs struct {
		operatingsystemconfig.Interface
		journal *journal
	}
)

func (c journalExtensions) WaitBeforeKubeAPIServer(ctx context.Context) error {
	return c.journal.task("waitUntilExtensionsBeforeKAPIReady")(ctx)
}

func (c journalExtensions) WaitAfterKubeAPIServer(ctx context.Context) error {
	return c.journal.task("waitUntilExtensionsReady")(ctx)
}

func (c journalExtensions) WaitAfterWorker(ctx context.Context) error {
	return c.journal.task("waitUntilExtensionsAfterWorkerReady")(ctx)
}

func (c journalExtensions) DeleteStaleResources(ctx context.Context) error {
	return c.journal.task("deleteStaleExtensions")(ctx)
}

func (c journalExtensions) WaitCleanupStaleResources(ctx context.Context) error {
	return c.journal.task("waitUntilStaleExtensionsDeleted")(ctx)
}

func (c journalExtensions) DestroyBeforeKubeAPIServer(ctx context.Context) error {
	return c.journal.task("destroyExtensionsBeforeKAPI")(ctx)
}

func (c journalExtensions) WaitCleanupBeforeKubeAPIServer(ctx context.Context) error {
	return c.journal.task("waitUntilExtensionsBeforeKAPIDeleted")(ctx)
}

func (c journalExtensions) DestroyAfterKubeAPIServer(ctx context.Context) error {
	return c.journal.task("destroyExtensionsAfterKAPI")(ctx)
}

func (c journalExtensions) WaitCleanupAfterKubeAPIServer(ctx context.Context) error {
	return c.journal.task("waitUntilExtensionsAfterKAPIDeleted")(ctx)
}

func (c journalExtensions) MigrateBeforeKubeAPIServer(ctx context.Context) error {
	return c.journal.task("migrateExtensionsBeforeKAPI")(ctx)
}

func (c journalExtensions) WaitMigrateBeforeKubeAPIServer(ctx context.Context) error {
	return c.journal.task("waitUntilExtensionsBeforeKAPIMigrated")(ctx)
}

func (c journalExtensions) MigrateAfterKubeAPIServer(ctx context.Context) error {
	return c.journal.task("migrateExtensionsAfterKAPI")(ctx)
}

func (c journalExtensions) WaitMigrateAfterKubeAPIServer(ctx context.Context) error {
	return c.journal.task("waitUntilExtensionsAfterKAPIMigrated")(ctx)
}

func (c journalConfigs) Wait(ctx context.Context) error {
	return c.journal.task("waitUntilOperatingSystemConfigReady")(ctx)
}

func (c journalConfigs) Destroy(ctx context.Context) error {
	return c.journal.task("destroyOperatingSystemConfig")(ctx)
}

func (c journalConfigs) WaitCleanup(ctx context.Context) error {
	return c.journal.task("waitUntilOperatingSystemConfigDeleted")(ctx)
}

func (c journalConfigs) DeleteStaleResources(ctx context.Context) error {
	return c.journal.task("deleteStaleOperatingSystemConfig")(ctx)
}

func (c journalConfigs) WaitCleanupStaleResources(ctx context.Context) error {
	return c.journal.task("waitUntilStaleOperatingSystemConfigDeleted")(ctx)
}

func (c journalConfigs) Migrate(ctx context.Context) error {
	return c.journal.task("migrateOperatingSystemConfig")(ctx)
}

func (c journalConfigs) WaitMigrate(ctx context.Context) error {
	return c.journal.task("waitUntilOperatingSystemConfigMigrated")(ctx)
}

// checkOrder checks that the flow runs the tasks of each chain in this order, and that no task runs
// if the task before it in the chain fails. Time is fake, since a failing task is retried for half
// a minute.
func checkOrder(t *testing.T, newGraph func(tasks) *flow.Graph, change func(*tasks), chains ...string) {
	t.Helper()
	run := func(t *testing.T, failing string) []string {
		j := &journal{instead: map[string]flow.TaskFn{failing: func(context.Context) error { return errors.New("it fails") }}}
		steps := j.tasks()
		change(&steps)
		if err := newGraph(steps).Compile().Run(t.Context(), flow.Opts{}); (err == nil) != (failing == "") {
			t.Errorf("with %q failing the flow ended with error %v", failing, err)
		}
		return j.ended
	}
	synctest.Test(t, func(t *testing.T) {
		all := run(t, "")
		for _, chain := range chains {
			before := ""
			for _, name := range strings.Fields(chain) {
				if !slices.Contains(all, name) {
					t.Errorf("%s is not part of the flow", name)
				}
				if before != "" && slices.Contains(run(t, before), name) {
					t.Errorf("%s does not depend on %s", name, before)
				}
				before = name
			}
		}
	})
}

// Arguments for the parameter change: they leave the tasks as they are, or prepare them for a
// hibernated shoot, a workerless shoot or a terminating namespace.
func unchanged(*tasks)         {}
func hibernating(steps *tasks) { steps.hibernated = true }
func workerless(steps *tasks)  { steps.workerless = true }
func terminating(steps *tasks) { steps.terminating = true }

// tasksOf returns the tasks that the flow runs.
func tasksOf(t *testing.T, newGraph func(tasks) *flow.Graph, change func(*tasks)) []string {
	t.Helper()
	j := &journal{}
	steps := j.tasks()
	change(&steps)
	if err := newGraph(steps).Compile().Run(t.Context(), flow.Opts{}); err != nil {
		t.Fatal(err)
	}
	return j.ended
}

func TestReconcileOrder(t *testing.T) {
	checkOrder(t, reconcileGraph, unchanged,
		`deployNamespace restoreSecrets deployReferencedResources deployResourceManager waitUntilResourceManagerReady deployShootAccess
		 deployExtensions waitUntilExtensionsReady deployOperatingSystemConfig waitUntilOperatingSystemConfigReady
		 deployNodeAgentResources waitUntilWorkerReady waitUntilOperatingSystemConfigApplied`,
		`waitUntilOperatingSystemConfigReady deployWorker waitUntilWorkerReady`,
		`waitUntilOperatingSystemConfigReady deploySystemResources`,
		`deployShootAccess deleteStaleExtensions waitUntilStaleExtensionsDeleted`,
		`deployWorker deployExtensionsAfterWorker waitUntilExtensionsAfterWorkerReady`,
		`deployOperatingSystemConfig deleteStaleOperatingSystemConfig waitUntilStaleOperatingSystemConfigDeleted`,
		`deployExtensionsBeforeKAPI waitUntilExtensionsBeforeKAPIReady deployResourceManager`,
	)
	for _, name := range tasksOf(t, reconcileGraph, unchanged) {
		if strings.HasPrefix(name, "destroy") || name == "hibernateControlPlane" {
			t.Errorf("%s is part of a reconciliation", name)
		}
	}
}

// The clean-up of a disabled extension and the rollout of the operating system config run in
// parallel: either must be able to end before the other starts.
func TestStaleExtensionsAreDeletedDuringTheRollout(t *testing.T) {
	for first, second := range map[string]string{
		"waitUntilStaleExtensionsDeleted":       "deployExtensions",
		"waitUntilOperatingSystemConfigApplied": "deleteStaleExtensions",
	} {
		t.Run(first+" first", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				firstEnded := make(chan struct{})
				j := &journal{instead: map[string]flow.TaskFn{
					first:  func(context.Context) error { close(firstEnded); return nil },
					second: func(ctx context.Context) error { return waitFor(ctx, firstEnded) },
				}}
				if err := reconcileGraph(j.tasks()).Compile().Run(t.Context(), flow.Opts{}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestDeleteOrder(t *testing.T) {
	const end = `waitUntilShootManagedResourcesDeleted destroyExtensionsAfterKAPI waitUntilExtensionsAfterKAPIDeleted
		destroyResourceManager deleteNamespace waitUntilNamespaceDeleted deleteCluster`
	checkOrder(t, deleteGraph, unchanged,
		`deployNamespace deployResourceManager waitUntilResourceManagerReady deployShootAccess
		 destroyWorker waitUntilWorkerGone destroyOperatingSystemConfig waitUntilOperatingSystemConfigDeleted
		 destroyExtensionsBeforeKAPI waitUntilExtensionsBeforeKAPIDeleted `+end,
		`waitUntilWorkerGone deleteManagedResources waitUntilManagedResourcesDeleted destroyExtensionsBeforeKAPI`,
		`waitUntilManagedResourcesDeleted deleteStaleExtensions waitUntilStaleExtensionsDeleted `+end,
		`waitUntilExtensionsAfterKAPIDeleted destroyReferencedResources deleteNamespace`,
	)

	checkOrder(t, deleteGraph, terminating, "destroyWorker waitUntilWorkerGone destroyOperatingSystemConfig", end)
	for _, name := range tasksOf(t, deleteGraph, terminating) {
		if strings.HasPrefix(name, "deploy") {
			t.Errorf("%s cannot work in a terminating namespace", name)
		}
	}
}

func TestFailedTaskStopsTheFlowAndIsNamed(t *testing.T) {
	j := &journal{instead: map[string]flow.TaskFn{
		"waitUntilExtensionsReady": func(context.Context) error { return errors.New("caches[0].upstream: Required value") },
	}}
	err := reconcileGraph(j.tasks()).Compile().Run(t.Context(), flow.Opts{})
	if err == nil {
		t.Fatal("the flow succeeded")
	}
	for _, want := range []string{"Waiting until extension resources handled after kube-apiserver are ready", "caches[0].upstream: Required value"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	if slices.Contains(j.ended, "deployOperatingSystemConfig") {
		t.Error("the operating system config was deployed although the extension is not ready")
	}
}

// checkSkipped fails the test if the flow runs any of the named tasks.
func checkSkipped(t *testing.T, newGraph func(tasks) *flow.Graph, change func(*tasks), names ...string) {
	t.Helper()
	all := tasksOf(t, newGraph, change)
	for _, name := range names {
		if slices.Contains(all, name) {
			t.Errorf("%s is part of the flow", name)
		}
	}
}

// When a shoot is hibernated, its extensions are reconciled before the nodes stop, and no task
// waits for nodes.
func TestHibernationOrder(t *testing.T) {
	checkOrder(t, reconcileGraph, hibernating,
		`deployResourceManager deployShootAccess deployExtensions waitUntilExtensionsReady deployOperatingSystemConfig
		 waitUntilOperatingSystemConfigReady deployWorker waitUntilWorkerReady hibernateControlPlane`,
		`hibernateControlPlane deployExtensionsBeforeKAPI waitUntilExtensionsBeforeKAPIReady`,
		`deployShootAccess deleteStaleExtensions`,
	)
	checkSkipped(t, reconcileGraph, hibernating, "waitUntilResourceManagerReady", "deployNodeAgentResources", "waitUntilOperatingSystemConfigApplied",
		"waitUntilStaleExtensionsDeleted", "waitUntilStaleOperatingSystemConfigDeleted")
}

func TestWorkerlessShootHasNoNodes(t *testing.T) {
	nodes := []string{"deployOperatingSystemConfig", "deployWorker", "deployNodeAgentResources", "deployExtensionsAfterWorker",
		"destroyWorker", "destroyOperatingSystemConfig", "migrateOperatingSystemConfig"}
	checkOrder(t, reconcileGraph, workerless, "deployShootAccess deployExtensions waitUntilExtensionsReady")
	checkSkipped(t, reconcileGraph, workerless, nodes...)
	checkOrder(t, deleteGraph, workerless, "deployShootAccess deleteManagedResources destroyExtensionsBeforeKAPI deleteCluster")
	checkSkipped(t, deleteGraph, workerless, nodes...)
	checkSkipped(t, migrateGraph, workerless, nodes...)
}

func TestMigrationOrder(t *testing.T) {
	const end = `waitUntilShootManagedResourcesDeleted migrateExtensionsAfterKAPI waitUntilExtensionsAfterKAPIMigrated
		destroyExtensionsAfterKAPI waitUntilExtensionsAfterKAPIDeleted deleteNamespace waitUntilNamespaceDeleted deleteCluster`
	checkOrder(t, migrateGraph, unchanged,
		`deployNamespace deployResourceManager waitUntilResourceManagerReady deployShootAccess keepManagedResources
		 deleteManagedResources waitUntilManagedResourcesDeleted migrateOperatingSystemConfig waitUntilOperatingSystemConfigMigrated
		 persistShootState destroyOperatingSystemConfig waitUntilOperatingSystemConfigDeleted destroyExtensionsBeforeKAPI
		 waitUntilExtensionsBeforeKAPIDeleted `+end,
		`waitUntilManagedResourcesDeleted migrateExtensionsBeforeKAPI waitUntilExtensionsBeforeKAPIMigrated destroyExtensionsBeforeKAPI`,
		`waitUntilOperatingSystemConfigMigrated deleteStaleExtensions waitUntilStaleExtensionsDeleted waitUntilShootManagedResourcesDeleted`,
	)
	checkSkipped(t, migrateGraph, unchanged, "destroyWorker", "destroyResourceManager")
	checkSkipped(t, migrateGraph, terminating, "deployNamespace", "deployResourceManager", "deployShootAccess", "keepManagedResources")
}

func TestForceDeletionOrder(t *testing.T) {
	checkOrder(t, forceDeleteGraph, unchanged,
		`deleteExtensionObjects waitUntilExtensionObjectsDeleted dropManagedResources forceDeleteManagedResources
		 waitUntilAllManagedResourcesDeleted deleteCluster deleteKubernetesResources deleteNamespace waitUntilNamespaceDeleted`,
		`deleteNamespace deleteShootState`,
	)
	checkSkipped(t, forceDeleteGraph, unchanged, "deployNamespace", "deployShootAccess", "destroyWorker", "waitUntilShootManagedResourcesDeleted")
}
