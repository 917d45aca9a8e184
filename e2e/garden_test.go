//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// operationTimeout bounds an operation on the Shoot in the garden.
const operationTimeout = 3 * time.Minute

// withGarden reports whether CONFIG names the file of a testbed with a garden.
func withGarden() bool { return path.Base(os.Getenv("CONFIG")) == "garden.yaml" }

// onGarden returns the scenarios that need a garden. They act on Shoots as their owners do. The
// last one deletes the testbed's Shoot.
func onGarden() []rig.Scenario {
	return []rig.Scenario{admission(), gardenRetry(), gardenRotation(), gardenUpgrade(), autoEnable(), registrationHeld(), gardenPublished(), gardenOperator(), gardenDeletion()}
}

// garden returns a client for the garden.
func garden(p *rig.Run) client.Client { return p.Session.Testbed.Gardenlet.Garden }

func shootKey() client.ObjectKey {
	return client.ObjectKey{Namespace: gardenlet.ProjectNamespace, Name: gardenlet.DefaultShoot}
}

func gardenShoot(ctx context.Context, p *rig.Run) *gardencorev1beta1.Shoot {
	p.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	p.Check(garden(p).Get(ctx, shootKey(), shoot))
	return shoot
}

// kubectl runs `testbed kubectl garden`, and returns its exit code and standard error.
func kubectl(ctx context.Context, p *rig.Run, stdin string, args ...string) (int, string) {
	p.Helper()
	var out, failed bytes.Buffer
	code, err := develop.Kubectl(ctx, p.Session.Testbed, kind.RoleGarden, args, develop.Streams{In: strings.NewReader(stdin), Out: &out, Err: &failed})
	p.Check(err)
	return code, failed.String()
}

// asWritten returns the Shoot as its owner writes it, without what the API server and the scheduler
// set.
func asWritten(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.UID, shoot.Generation, shoot.Spec.SeedName = "", 0, nil
	return shoot
}

// kubectlApply applies the Shoot with kubectl, and returns the exit code and standard error.
func kubectlApply(ctx context.Context, p *rig.Run, shoot *gardencorev1beta1.Shoot) (int, string) {
	p.Helper()
	manifest, err := yaml.Marshal(shoot)
	p.Check(err)
	return kubectl(ctx, p, string(manifest), "apply", "-f", "-")
}

// annotate requests an operation as a user does.
func annotate(ctx context.Context, p *rig.Run, operation string) {
	p.Helper()
	if code, text := kubectl(ctx, p, "", "annotate", "shoot", gardenlet.DefaultShoot, v1beta1constants.GardenerOperation+"="+operation); code != 0 {
		p.Fatalf("annotate the Shoot with %s: exit code %d: %s", operation, code, text)
	}
}

// awaitState waits until the last operation of the newest generation has this state, and returns
// the Shoot.
func awaitState(ctx context.Context, p *rig.Run, state gardencorev1beta1.LastOperationState) *gardencorev1beta1.Shoot {
	p.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	p.Await(ctx, fmt.Sprintf("the Shoot's last operation is %s", state), operationTimeout, func(ctx context.Context) (bool, string, error) {
		if err := garden(p).Get(ctx, shootKey(), shoot); err != nil {
			return false, "", err
		}
		last := shoot.Status.LastOperation
		if last == nil || shoot.Status.ObservedGeneration != shoot.Generation || shoot.Annotations[v1beta1constants.GardenerOperation] != "" {
			return false, fmt.Sprintf("generation %d, observed %d", shoot.Generation, shoot.Status.ObservedGeneration), nil
		}
		return last.State == state, fmt.Sprintf("%s %s: %s", last.Type, last.State, last.Description), nil
	})
	return shoot
}

// awaitHealthy waits until the last operation succeeded and all conditions of the Shoot are true.
func awaitHealthy(ctx context.Context, p *rig.Run) {
	p.Helper()
	awaitState(ctx, p, gardencorev1beta1.LastOperationStateSucceeded)
	p.Await(ctx, "all conditions of the Shoot are true", operationTimeout, func(ctx context.Context) (bool, string, error) {
		shoot := &gardencorev1beta1.Shoot{}
		if err := garden(p).Get(ctx, shootKey(), shoot); err != nil {
			return false, "", err
		}
		i := slices.IndexFunc(shoot.Status.Conditions, func(c gardencorev1beta1.Condition) bool { return c.Status != gardencorev1beta1.ConditionTrue })
		if i < 0 {
			return len(shoot.Status.Conditions) > 0, "no conditions", nil
		}
		bad := shoot.Status.Conditions[i]
		return false, fmt.Sprintf("%s is %s: %s", bad.Type, bad.Status, bad.Message), nil
	})
	if shoot := gardenShoot(ctx, p); len(shoot.Status.LastErrors) > 0 {
		p.Fatalf("the Shoot has errors: %v", shoot.Status.LastErrors)
	}
}

// changeShoot applies a change to the Shoot in the garden.
func changeShoot(ctx context.Context, p *rig.Run, change func(*gardencorev1beta1.Shoot)) {
	p.Helper()
	shoot := gardenShoot(ctx, p)
	patch := client.MergeFrom(shoot.DeepCopy())
	change(shoot)
	p.Check(garden(p).Patch(ctx, shoot, patch))
}
