package status

import "strings"

// seedProblem is the prefix of Problems with the parts of the status that come from the seed.
const seedProblem = "seed: "

// UnknownStage is the error for a Shoot whose stage could not be read. It is an environment error:
// the same call may succeed later.
type UnknownStage struct {
	// Problems are those of the status.
	Problems []string
}

func (e *UnknownStage) Error() string {
	why := strings.Join(e.Problems, "; ")
	if why == "" {
		why = "it is missing in the status"
	}
	return "the stage of the shoot is unknown: " + why + " (`testbed status` shows what answers, `testbed up` repairs it)"
}

// EnvironmentError marks the error for internal/program: exit code 3.
func (*UnknownStage) EnvironmentError() {}

// CheckStage returns an *UnknownStage if the stage could not be read. An absent Shoot has a stage.
// Without a stage nothing else was read from the seed: Rotation and the lists are empty.
func (s *Shoot) CheckStage() error {
	if s.Stage == "" {
		return &UnknownStage{Problems: s.Problems}
	}
	return nil
}

// SeedProblems returns the Problems with the parts of the status that come from the seed.
func (s *Shoot) SeedProblems() []string {
	var all []string
	for _, problem := range s.Problems {
		if strings.HasPrefix(problem, seedProblem) {
			all = append(all, problem)
		}
	}
	return all
}
