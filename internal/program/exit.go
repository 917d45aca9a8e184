package program

import "errors"

// Exit codes.
const (
	// ExitFine says that everything was done.
	ExitFine = 0
	// ExitFailed says that something failed; for a check, that it is red.
	ExitFailed = 1
	// ExitUsage says that the caller made a mistake: wrong flags, arguments or configuration.
	ExitUsage = 2
	// ExitEnvironment says that the surroundings lack something; the same call may succeed elsewhere or later.
	ExitEnvironment = 3
)

// Usage marks an error as the caller's mistake. The text stays the same.
func Usage(err error) error { return usageError{err} }

// Environment marks an error as one of the surroundings. An error type does the same for itself by a method
// EnvironmentError().
func Environment(err error) error { return environmentError{err} }

// ExitCode tells which exit code an error asks for: that of the outermost mark, ExitFailed without one.
func ExitCode(err error) int {
	var marked interface{ exitCode() int }
	var environment interface{ EnvironmentError() }
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &marked):
		return marked.exitCode()
	case errors.As(err, &environment):
		return ExitEnvironment
	default:
		return ExitFailed
	}
}

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
func (e usageError) exitCode() int { return ExitUsage }

type environmentError struct{ error }

func (e environmentError) Unwrap() error { return e.error }
func (e environmentError) exitCode() int { return ExitEnvironment }
