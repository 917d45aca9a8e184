//go:build e2e

package nodeless

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

const (
	// buildTimeout bounds the build of the programs. Without a build cache, Kubernetes takes ten
	// minutes on two cores, and the build of another checkout may have to end first.
	buildTimeout = 45 * time.Minute
	// runTimeout bounds the run after the build. Even with the deletions that may follow, the run ends
	// before the timeout of the Makefile, which would leave the processes running.
	runTimeout = 7 * time.Minute
	// deletionTimeout bounds the deletion of a scenario's shoot.
	deletionTimeout = 2 * time.Minute
)

var (
	shared = &environment{}
	// running is the context of the scenarios. It ends with a cause if the environment fails.
	running context.Context
)

// scenarios returns the scenarios. They are independent of each other.
func scenarios() []rig.Scenario {
	return []rig.Scenario{
		badConfig(),
		badReference(),
		endpointNotReady(),
		forceDelete(),
		growVolume(),
		hibernateInvalid(),
		networkPolicies(),
		pendingRemoval(),
		refusedDeletion(),
		selfHosted(),
		slowClaim(),
		twoShoots(),
		workerless(),
	}
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	signaled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if shared.programs, err = build(signaled); err != nil {
		fmt.Fprintf(os.Stderr, "nodeless: %v\n", err)
		return 1
	}
	ctx, expire := context.WithTimeoutCause(signaled, runTimeout, fmt.Errorf("the run took longer than %s", runTimeout))
	defer expire()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running = ctx
	folder, err := filepath.Abs(filepath.Join("..", "..", "_artifacts", "nodeless"))
	shared.folder = folder
	if err == nil {
		err = shared.start(ctx, func(err error) {
			if err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	code := 1
	if err == nil {
		code = m.Run()
		err = proveNothingForbidden(shared.seed.control.Audit)
	}
	err = errors.Join(context.Cause(ctx), err)
	cancel(nil)
	if err = errors.Join(err, shared.close()); err != nil {
		fmt.Fprintf(os.Stderr, "nodeless: %v\n", err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "logs: %s\n", folder)
	}
	return code
}

// TestScenarios runs as many scenarios at once as there are clusters for their shoots.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, scenario := range scenarios() {
		t.Run(scenario.Name(), func(t *testing.T) {
			t.Parallel()
			session, err := shared.session(running, t, scenario.Name())
			if err != nil {
				t.Fatal(err)
			}
			session.Prove(running, t, scenario)
		})
	}
}

// session returns a session for a shoot that does not exist yet. The seed is the cluster of the
// self-hosted one. When the test ends, the shoot is deleted, and its cluster is free for the next
// shoot.
func (e *environment) session(ctx context.Context, t *testing.T, name string) (*rig.Session, error) {
	t.Helper()
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return nil, err
	}
	var shoot *cluster
	for shoot == nil {
		select {
		case shoot = <-e.free:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a cluster: %w", context.Cause(ctx))
		}
		if name == selfHosted().Name() && shoot != e.seed {
			e.free <- shoot
			shoot = nil
			if e.seedLost.Load() {
				return nil, errors.New("the seed's cluster contains the remains of another scenario")
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
	session := rig.NewSessionWithoutNodes(&gardenlet.Gardenlet{
		Name: name, Seed: e.seedClientSet, Shoot: shoot.clientSet, ShootKubeconfig: shoot.kubeconfig,
		Garden: gardener.NewGarden(registration), ResourceManagerImage: resourceManagerName, Log: e.log,
	}, e.seedAccess, shoot.access)
	t.Cleanup(func() {
		if running.Err() == nil { // otherwise the clusters are stopped anyway
			if err := e.remove(context.WithoutCancel(ctx), session); err != nil { // the scenario has ended
				t.Errorf("delete the shoot: %v", err)
				e.seedLost.CompareAndSwap(false, shoot == e.seed)
				return // other scenarios would find its caches in the cluster
			}
		}
		e.free <- shoot
	})
	return session, nil
}

// remove deletes the shoot and returns when no cache is left in its cluster.
func (e *environment) remove(ctx context.Context, session *rig.Session) error {
	ctx, cancel := context.WithTimeoutCause(ctx, deletionTimeout, fmt.Errorf("the deletion took longer than %s", deletionTimeout))
	defer cancel()
	err := session.Seed.Get(ctx, client.ObjectKey{Name: session.Namespace()}, &corev1.Namespace{})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	driver := session.Testbed.Gardenlet
	if err := driver.Delete(ctx, gardenlet.NewShoot(driver.Name)); err != nil {
		return err
	}
	return rig.Await(ctx, "no cache is left in the shoot", time.Minute, func(ctx context.Context) (bool, string, error) {
		left, err := rig.CacheObjects(ctx, session.Shoot)
		return left == "", left, err
	})
}

// proveNothingForbidden proves that the chart grants all permissions that the extension needed.
func proveNothingForbidden(audit *bench.AuditLog) error {
	events, err := audit.Next()
	if err != nil {
		return err
	}
	all, forbidden := bench.Count(events)
	if all["patch extensions/status"] == 0 {
		return errors.New("the audit log has no status that the extension wrote")
	}
	if len(forbidden) > 0 {
		return fmt.Errorf("the seed's API server forbade requests of the extension: %v", slices.Sorted(maps.Keys(forbidden)))
	}
	fmt.Printf("%d requests of the extension, none forbidden\n", len(events))
	return nil
}
