package status

import (
	"strings"
)

// seedProblem begins the Problems of what the seed has of the shoot.
const seedProblem = "seed: "

// UnknownStage says that it could not be read where the shoot stands. It is one of the surroundings: the same call may succeed later.
type UnknownStage struct {
	// Problems are those of the ShootStatus.
	Problems []string
}

// Error says why, and what to do.
func (e *UnknownStage) Error() string {
	why := strings.Join(e.Problems, "; ")
	if why == "" {
		why = "the status of the shoot does not say it"
	}
	return "it is not known where the shoot stands: " + why + " (`testbed status` shows what answers, `testbed up` repairs it)"
}

// EnvironmentError implements the mark of internal/program.
func (*UnknownStage) EnvironmentError() {}

// CheckStage returns an *UnknownStage with the Problems of a status whose Stage could not be read, and nil for any other one, that
// of an absent shoot too. Without a stage nothing else that the seed has was read: Rotation is empty then, and so are the lists.
func (s *Shoot) CheckStage() error {
	if s.Stage == "" {
		return &UnknownStage{Problems: s.Problems}
	}
	return nil
}

// seedProblems are the Problems of what the seed has of the shoot: something of it is missing in the status.
func (s *Shoot) SeedProblems() []string {
	var all []string
	for _, problem := range s.Problems {
		if strings.HasPrefix(problem, seedProblem) {
			all = append(all, problem)
		}
	}
	return all
}
