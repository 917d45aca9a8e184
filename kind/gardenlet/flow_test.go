package gardenlet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gardener/gardener/pkg/utils/flow"
)

// journal records the tasks that ran, in the order in which they ended.
type journal struct {
	mutex sync.Mutex
	ended []string
	// instead replaces the task of that name.
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
		deployNamespace:                       j.task("deployNamespace"),
		deleteNamespace:                       j.task("deleteNamespace"),
		waitUntilNamespaceDeleted:             j.task("waitUntilNamespaceDeleted"),
		deployReferencedResources:             j.task("deployReferencedResources"),
		destroyReferencedResources:            j.task("destroyReferencedResources"),
		deployResourceManager:                 j.task("deployResourceManager"),
		waitUntilResourceManagerReady:         j.task("waitUntilResourceManagerReady"),
		destroyResourceManager:                j.task("destroyResourceManager"),
		deployShootAccess:                     j.task("deployShootAccess"),
		deployExtensionsBeforeKAPI:            j.task("deployExtensionsBeforeKAPI"),
		waitUntilExtensionsBeforeKAPIReady:    j.task("waitUntilExtensionsBeforeKAPIReady"),
		deployExtensions:                      j.task("deployExtensions"),
		waitUntilExtensionsReady:              j.task("waitUntilExtensionsReady"),
		deployExtensionsAfterWorker:           j.task("deployExtensionsAfterWorker"),
		waitUntilExtensionsAfterWorkerReady:   j.task("waitUntilExtensionsAfterWorkerReady"),
		deleteStaleExtensions:                 j.task("deleteStaleExtensions"),
		waitUntilStaleExtensionsDeleted:       j.task("waitUntilStaleExtensionsDeleted"),
		destroyExtensionsBeforeKAPI:           j.task("destroyExtensionsBeforeKAPI"),
		waitUntilExtensionsBeforeKAPIDeleted:  j.task("waitUntilExtensionsBeforeKAPIDeleted"),
		destroyExtensionsAfterKAPI:            j.task("destroyExtensionsAfterKAPI"),
		waitUntilExtensionsAfterKAPIDeleted:   j.task("waitUntilExtensionsAfterKAPIDeleted"),
		deployOperatingSystemConfig:           j.task("deployOperatingSystemConfig"),
		waitUntilOperatingSystemConfigReady:   j.task("waitUntilOperatingSystemConfigReady"),
		destroyOperatingSystemConfig:          j.task("destroyOperatingSystemConfig"),
		waitUntilOperatingSystemConfigDeleted: j.task("waitUntilOperatingSystemConfigDeleted"),
		deployNodeAgentResources:              j.task("deployNodeAgentResources"),
		waitUntilOperatingSystemConfigApplied: j.task("waitUntilOperatingSystemConfigApplied"),
		deployWorker:                          j.task("deployWorker"),
		waitUntilWorkerReady:                  j.task("waitUntilWorkerReady"),
		destroyWorker:                         j.task("destroyWorker"),
		waitUntilWorkerGone:                   j.task("waitUntilWorkerGone"),
		deleteManagedResources:                j.task("deleteManagedResources"),
		waitUntilManagedResourcesDeleted:      j.task("waitUntilManagedResourcesDeleted"),
		waitUntilShootManagedResourcesDeleted: j.task("waitUntilShootManagedResourcesDeleted"),
		deleteCluster:                         j.task("deleteCluster"),
	}
}

// run runs the flow and checks that it has the tasks of each chain, in the chain's order.
func (j *journal) run(t *testing.T, graph *flow.Graph, chains ...string) {
	t.Helper()
	if err := graph.Compile().Run(t.Context(), flow.Opts{}); err != nil {
		t.Fatal(err)
	}
	for _, chain := range chains {
		last := -1
		for _, name := range strings.Fields(chain) {
			position := slices.Index(j.ended, name)
			if position < 0 {
				t.Errorf("%s did not run", name)
			}
			if position < last {
				t.Errorf("%s came too early in %v", name, j.ended)
			}
			last = position
		}
	}
}

func TestReconcileOrder(t *testing.T) {
	j := &journal{}
	j.run(t, reconcileGraph(j.tasks()),
		`deployNamespace deployReferencedResources deployResourceManager waitUntilResourceManagerReady deployShootAccess
		 deployExtensions waitUntilExtensionsReady deployOperatingSystemConfig waitUntilOperatingSystemConfigReady
		 deployNodeAgentResources waitUntilWorkerReady waitUntilOperatingSystemConfigApplied`,
		`waitUntilOperatingSystemConfigReady deployWorker waitUntilWorkerReady`,
		`deployShootAccess deleteStaleExtensions waitUntilStaleExtensionsDeleted`,
		`deployWorker deployExtensionsAfterWorker waitUntilExtensionsAfterWorkerReady`,
		`deployExtensionsBeforeKAPI waitUntilExtensionsBeforeKAPIReady deployResourceManager`,
	)
	for _, name := range j.ended {
		if strings.HasPrefix(name, "destroy") {
			t.Errorf("%s is no part of a reconciliation", name)
		}
	}
}

// The clean-up of an extension that is disabled runs while the nodes get their new operating system config, and neither
// waits for the other: both orders must be possible.
func TestStaleExtensionsAreDeletedDuringTheRollout(t *testing.T) {
	for first, second := range map[string]string{
		"waitUntilStaleExtensionsDeleted":       "deployExtensions",
		"waitUntilOperatingSystemConfigApplied": "deleteStaleExtensions",
	} {
		t.Run(first+" first", func(t *testing.T) {
			firstEnded := make(chan struct{})
			j := &journal{instead: map[string]flow.TaskFn{
				first: func(context.Context) error { close(firstEnded); return nil },
				second: func(ctx context.Context) error {
					select {
					case <-firstEnded:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				},
			}}
			j.run(t, reconcileGraph(j.tasks()), first+" "+second)
		})
	}
}

func TestDeleteOrder(t *testing.T) {
	const end = `waitUntilShootManagedResourcesDeleted destroyExtensionsAfterKAPI waitUntilExtensionsAfterKAPIDeleted
		destroyResourceManager deleteNamespace waitUntilNamespaceDeleted deleteCluster`
	j := &journal{}
	j.run(t, deleteGraph(j.tasks()),
		`deployNamespace deployResourceManager waitUntilResourceManagerReady deployShootAccess
		 destroyWorker waitUntilWorkerGone destroyOperatingSystemConfig waitUntilOperatingSystemConfigDeleted
		 destroyExtensionsBeforeKAPI waitUntilExtensionsBeforeKAPIDeleted `+end,
		`waitUntilWorkerGone deleteManagedResources waitUntilManagedResourcesDeleted destroyExtensionsBeforeKAPI`,
		`waitUntilManagedResourcesDeleted deleteStaleExtensions waitUntilStaleExtensionsDeleted `+end,
		`waitUntilExtensionsAfterKAPIDeleted destroyReferencedResources deleteNamespace`,
	)

	terminating := &journal{}
	steps := terminating.tasks()
	steps.terminating = true
	terminating.run(t, deleteGraph(steps), "destroyWorker "+end)
	if slices.Contains(terminating.ended, "deployNamespace") || slices.Contains(terminating.ended, "deployResourceManager") {
		t.Errorf("objects are created in a terminating namespace: %v", terminating.ended)
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
