package proof

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"strings"
)

const (
	// scenariosRed and scenariosKeptOut are exit codes of a run: a scenario failed, and the surroundings did not let the run begin, as
	// where another process works on the testbed.
	scenariosRed     = 1
	scenariosKeptOut = 3
	// scenariosSay begins the line in which a run says why it could not go on.
	scenariosSay = "e2e: "
)

// judgeRun returns why a run told nothing about the scenarios. That some failed is no such reason: it is what was asked for.
func judgeRun(err error, log string) error {
	failed := (*exec.ExitError)(nil)
	switch {
	case err == nil, errors.As(err, &failed) && failed.ExitCode() == scenariosRed:
		return nil
	case failed != nil && failed.ExitCode() == scenariosKeptOut:
		printed, readErr := os.ReadFile(log)
		if reason := saidReason(string(printed)); readErr == nil && reason != "" {
			err = errors.New(reason)
		}
		return &keptOutError{err}
	default:
		return err
	}
}

// saidReason returns the last line in which a run says why it could not go on, or else its last line.
func saidReason(printed string) string {
	reason, last := "", ""
	for line := range strings.Lines(strings.TrimSpace(printed)) {
		last = strings.TrimSpace(line)
		if said, found := strings.CutPrefix(last, scenariosSay); found {
			reason = said
		}
	}
	return cmp.Or(reason, last)
}

// keptOutError says what kept a run of scenarios from beginning.
type keptOutError struct{ reason error }

func (e *keptOutError) Error() string { return e.reason.Error() }

func (e *keptOutError) Unwrap() error { return e.reason }

// EnvironmentError marks the error for internal/program.
func (*keptOutError) EnvironmentError() {}
