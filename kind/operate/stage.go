package operate

import (
	"fmt"
	"slices"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// shootVerb is an operation on the Shoot, and the stages in which it is possible.
type shootVerb struct {
	name, step string
	from       []gardenlet.Stage
}

// An interrupted deletion, migration or restoration can only be continued by the same verb.
var (
	verbApply          = shootVerb{"apply", "shoot reconciled", []gardenlet.Stage{gardenlet.StageAbsent, gardenlet.StagePresent}}
	verbReconcile      = shootVerb{"reconcile", "shoot reconciled", []gardenlet.Stage{gardenlet.StagePresent}}
	verbDisable        = shootVerb{"disable", "extension disabled", []gardenlet.Stage{gardenlet.StagePresent}}
	verbHibernate      = shootVerb{"hibernate", "shoot hibernated", []gardenlet.Stage{gardenlet.StagePresent}}
	verbWake           = shootVerb{"wake", "shoot woken up", []gardenlet.Stage{gardenlet.StagePresent}}
	verbRotateStart    = shootVerb{"rotate-ca-start", "new CA prepared", []gardenlet.Stage{gardenlet.StagePresent}}
	verbRotateComplete = shootVerb{"rotate-ca-complete", "CA rotated", []gardenlet.Stage{gardenlet.StagePresent}}
	verbDelete         = shootVerb{"delete", "shoot deleted",
		[]gardenlet.Stage{gardenlet.StageAbsent, gardenlet.StagePresent, gardenlet.StageDeleting}}
	verbMigrate = shootVerb{"migrate", "shoot migrated", []gardenlet.Stage{gardenlet.StagePresent, gardenlet.StageMigrating}}
	verbRestore = shootVerb{"restore", "shoot restored", []gardenlet.Stage{gardenlet.StageMigrated, gardenlet.StageRestoring}}
)

// possible returns a *RefusedError if the verb is not possible for the Shoot, which is nil in
// StageAbsent. The rules for a rotation are those of gardener-apiserver for the annotations
// rotate-ca-start and rotate-ca-complete (validateShootOperationContext in
// pkg/api/core/validation/shoot.go). Other verbs are possible in all phases.
func (v shootVerb) possible(shoot *gardencorev1beta1.Shoot, stage gardenlet.Stage) error {
	if !slices.Contains(v.from, stage) {
		return &RefusedError{v.name, whyNotIn(stage)}
	}
	if v.name != verbRotateStart.name && v.name != verbRotateComplete.name {
		return nil
	}
	phase := v1beta1helper.GetShootCARotationPhase(shoot.Status.Credentials)
	none := phase == "" || phase == gardencorev1beta1.RotationCompleted
	switch {
	case v.name == verbRotateStart.name && none && readyForRotation(shoot.Status.LastOperation),
		v.name == verbRotateComplete.name && phase == gardencorev1beta1.RotationPrepared:
		return nil
	case v.name == verbRotateStart.name && none:
		return &RefusedError{v.name, "the shoot was not created successfully: run `testbed shoot reconcile` first"}
	}
	return &RefusedError{v.name, whyNotAfter(phase)}
}

// RefusedError is the error for an operation that is not possible now. Nothing was changed.
type RefusedError struct{ Verb, Why string }

func (e *RefusedError) Error() string { return fmt.Sprintf("shoot %s: %s", e.Verb, e.Why) }

// UsageError marks the error for internal/program: exit code 2.
func (*RefusedError) UsageError() {}

func whyNotIn(stage gardenlet.Stage) string {
	switch stage {
	case gardenlet.StageAbsent:
		return "the shoot does not exist: create it with `testbed shoot apply`"
	case gardenlet.StageMigrating:
		return "its migration is not complete: continue it with `testbed shoot migrate`"
	case gardenlet.StageMigrated:
		return "it is migrated: run `testbed shoot restore` first"
	case gardenlet.StageRestoring:
		return "its restoration is not complete: continue it with `testbed shoot restore`"
	case gardenlet.StageDeleting:
		return "its deletion is not complete: continue it with `testbed shoot delete`"
	}
	return "it is not migrated: run `testbed shoot migrate` first"
}

func whyNotAfter(phase gardencorev1beta1.CredentialsRotationPhase) string {
	switch phase {
	case gardencorev1beta1.RotationPreparing:
		return "a rotation was started and is not prepared: continue it with `testbed shoot reconcile`"
	case gardencorev1beta1.RotationPrepared:
		return "a rotation is prepared: run `testbed shoot rotate-ca-complete` first"
	case gardencorev1beta1.RotationCompleting:
		return "a rotation is being completed: continue it with `testbed shoot reconcile`"
	case "", gardencorev1beta1.RotationCompleted:
		return "no rotation is prepared: run `testbed shoot rotate-ca-start` first"
	}
	return fmt.Sprintf("a rotation is in phase %s", phase)
}

// readyForRotation corresponds to isShootReadyForRotationStart in Gardener's validation/shoot.go.
func readyForRotation(last *gardencorev1beta1.LastOperation) bool {
	created := []gardencorev1beta1.LastOperationType{gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationTypeRestore}
	return last != nil && (last.Type == gardencorev1beta1.LastOperationTypeReconcile ||
		slices.Contains(created, last.Type) && last.State == gardencorev1beta1.LastOperationStateSucceeded)
}
