package operate

import (
	"fmt"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// shootVerb is an operation on the shoot, and where the shoot may stand for it.
type shootVerb struct {
	name, step string
	from       []gardenlet.Stage
}

// The operations that begin go on from where they were interrupted; every other one has to wait for their end.
var (
	verbApply          = shootVerb{"apply", "shoot reconciled", []gardenlet.Stage{gardenlet.StageAbsent, gardenlet.StagePresent}}
	verbReconcile      = shootVerb{"reconcile", "shoot reconciled", []gardenlet.Stage{gardenlet.StagePresent}}
	verbDisable        = shootVerb{"disable", "extension disabled", []gardenlet.Stage{gardenlet.StagePresent}}
	verbHibernate      = shootVerb{"hibernate", "shoot hibernated", []gardenlet.Stage{gardenlet.StagePresent}}
	verbWake           = shootVerb{"wake", "shoot woken up", []gardenlet.Stage{gardenlet.StagePresent}}
	verbRotateStart    = shootVerb{"rotate-ca-start", "certificate authorities prepared", []gardenlet.Stage{gardenlet.StagePresent}}
	verbRotateComplete = shootVerb{"rotate-ca-complete", "certificate authorities rotated", []gardenlet.Stage{gardenlet.StagePresent}}
	verbDelete         = shootVerb{"delete", "shoot deleted",
		[]gardenlet.Stage{gardenlet.StageAbsent, gardenlet.StagePresent, gardenlet.StageDeleting}}
	verbMigrate = shootVerb{"migrate", "shoot migrated", []gardenlet.Stage{gardenlet.StagePresent, gardenlet.StageMigrating}}
	verbRestore = shootVerb{"restore", "shoot restored", []gardenlet.Stage{gardenlet.StageMigrated, gardenlet.StageRestoring}}
)

// possible says whether the verb is possible for a shoot with this status. Where the stage could not be read, that is an
// *UnknownStage.
func (v shootVerb) possible(s *status.Shoot) error {
	if err := s.CheckStage(); err != nil {
		return fmt.Errorf("shoot %s: %w", v.name, err)
	}
	if err := v.check(s.Stage); err != nil {
		return err
	}
	return v.checkRotation(s.Rotation, s.LastOperation)
}

// check says whether the verb is possible where the shoot stands.
func (v shootVerb) check(stage gardenlet.Stage) error {
	if slices.Contains(v.from, stage) {
		return nil
	}
	return &WrongStage{Verb: v.name, Stage: stage}
}

// WrongStage says that an operation is not possible for the shoot as it stands. Nothing was changed.
type WrongStage struct {
	// Verb is the operation that was asked for.
	Verb string
	// Stage is where the shoot stands.
	Stage gardenlet.Stage
}

// Error says what to do first.
func (e *WrongStage) Error() string {
	var why string
	switch e.Stage {
	case gardenlet.StageAbsent:
		why = "there is no shoot: `testbed shoot apply` creates one"
	case gardenlet.StageMigrating:
		why = "its migration has begun: `testbed shoot migrate` goes on with it"
	case gardenlet.StageMigrated:
		why = "it has been migrated: `testbed shoot restore` comes first"
	case gardenlet.StageRestoring:
		why = "its restoration has begun: `testbed shoot restore` goes on with it"
	case gardenlet.StageDeleting:
		why = "its deletion has begun: `testbed shoot delete` goes on with it"
	default:
		why = "it has not been migrated: `testbed shoot migrate` comes first"
	}
	return fmt.Sprintf("shoot %s: %s", e.Verb, why)
}

// UsageError marks the error for internal/program: exit code 2.
func (*WrongStage) UsageError() {}
