package operate

import (
	"cmp"
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

// possible returns a *StageError or a *RotationError if the verb is not possible for the Shoot,
// which is nil in StageAbsent.
func (v shootVerb) possible(shoot *gardencorev1beta1.Shoot, stage gardenlet.Stage) error {
	if !slices.Contains(v.from, stage) {
		return &StageError{Verb: v.name, Stage: stage}
	}
	if shoot == nil {
		return nil
	}
	return v.checkRotation(v1beta1helper.GetShootCARotationPhase(shoot.Status.Credentials), shoot.Status.LastOperation)
}

// StageError is the error for an operation that is not possible in the stage of the Shoot. Nothing
// was changed.
type StageError struct {
	Verb  string // the name of the requested operation
	Stage gardenlet.Stage
}

func (e *StageError) Error() string {
	why := map[gardenlet.Stage]string{
		gardenlet.StageAbsent:    "the shoot does not exist: create it with `testbed shoot apply`",
		gardenlet.StagePresent:   "it is not migrated: run `testbed shoot migrate` first",
		gardenlet.StageMigrating: "its migration is not complete: continue it with `testbed shoot migrate`",
		gardenlet.StageMigrated:  "it is migrated: run `testbed shoot restore` first",
		gardenlet.StageRestoring: "its restoration is not complete: continue it with `testbed shoot restore`",
		gardenlet.StageDeleting:  "its deletion is not complete: continue it with `testbed shoot delete`",
	}
	return fmt.Sprintf("shoot %s: %s", e.Verb, cmp.Or(why[e.Stage], why[gardenlet.StagePresent]))
}

// UsageError marks the error for internal/program: exit code 2.
func (*StageError) UsageError() {}

// RotationError is the error for a step of the CA rotation that is not possible in the current
// phase. A gardener-apiserver would refuse the same step. Nothing was changed.
type RotationError struct {
	Verb string // the name of the requested operation
	// Phase is the phase of the rotation. Empty if there was no rotation.
	Phase gardencorev1beta1.CredentialsRotationPhase
}

func (e *RotationError) Error() string {
	var why string
	switch e.Phase {
	case gardencorev1beta1.RotationPreparing:
		why = "a rotation was started and is not prepared: continue it with `testbed shoot reconcile`"
	case gardencorev1beta1.RotationPrepared:
		why = "a rotation is prepared: run `testbed shoot rotate-ca-complete` first"
	case gardencorev1beta1.RotationCompleting:
		why = "a rotation is being completed: continue it with `testbed shoot reconcile`"
	case "", gardencorev1beta1.RotationCompleted:
		why = "no rotation is prepared: run `testbed shoot rotate-ca-start` first"
		if e.Verb == verbRotateStart.name {
			why = "the shoot was not created successfully: run `testbed shoot reconcile` first"
		}
	default:
		why = fmt.Sprintf("a rotation is in phase %s", e.Phase)
	}
	return fmt.Sprintf("shoot %s: %s", e.Verb, why)
}

// UsageError marks the error for internal/program: exit code 2.
func (*RotationError) UsageError() {}

// checkRotation returns a *RotationError if the verb is not possible in the phase or after the last
// operation. The rules are those of gardener-apiserver for the annotations rotate-ca-start and
// rotate-ca-complete (validateShootOperationContext in pkg/api/core/validation/shoot.go). Other
// verbs are possible in all phases.
func (v shootVerb) checkRotation(phase gardencorev1beta1.CredentialsRotationPhase, last *gardencorev1beta1.LastOperation) error {
	possible := true
	switch v.name {
	case verbRotateStart.name:
		possible = (phase == "" || phase == gardencorev1beta1.RotationCompleted) && readyForRotation(last)
	case verbRotateComplete.name:
		possible = phase == gardencorev1beta1.RotationPrepared
	}
	if possible {
		return nil
	}
	return &RotationError{Verb: v.name, Phase: phase}
}

// readyForRotation corresponds to isShootReadyForRotationStart in Gardener's validation/shoot.go.
func readyForRotation(last *gardencorev1beta1.LastOperation) bool {
	created := []gardencorev1beta1.LastOperationType{gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationTypeRestore}
	return last != nil && (last.Type == gardencorev1beta1.LastOperationTypeReconcile ||
		slices.Contains(created, last.Type) && last.State == gardencorev1beta1.LastOperationStateSucceeded)
}
