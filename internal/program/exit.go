package program

import (
	"errors"
	"fmt"
)

// Exit codes of every command.
const (
	// ExitFine: everything was done.
	ExitFine = 0
	// ExitFailed: something failed, or a check is red.
	ExitFailed = 1
	// ExitUsage: wrong flags, arguments or configuration. The same call fails again.
	ExitUsage = 2
	// ExitEnvironment: the machine, the network or the testbed is not ready. The same call may
	// succeed elsewhere or later.
	ExitEnvironment = 3
)

// UsageError marks an error as a usage error. An error type implements it to mark itself.
type UsageError interface{ UsageError() }

// EnvironmentError marks an error as an environment error. An error type implements it to mark
// itself.
type EnvironmentError interface{ EnvironmentError() }

// Usage marks err as a usage error. Its text stays the same.
func Usage(err error) error { return marked{err, ExitUsage} }

// Environment marks err as an environment error. Its text stays the same.
func Environment(err error) error { return marked{err, ExitEnvironment} }

// Exit is for a command that ran another program. It ends with the exit code of that program, and
// Run prints nothing, because the program has printed its own messages. Exit is nil for 0.
func Exit(code int) error {
	if code == ExitFine {
		return nil
	}
	return exited(code)
}

// ExitCode returns the exit code for err: ExitFine for nil, ExitFailed for an error without a mark.
// The outermost of Usage, Environment and Exit wins over error types that mark themselves. Among
// those, a usage error wins over an environment error.
func ExitCode(err error) int {
	var (
		explicit    interface{ exitCode() int }
		usage       UsageError
		environment EnvironmentError
	)
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &explicit):
		return explicit.exitCode()
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &environment):
		return ExitEnvironment
	default:
		return ExitFailed
	}
}

type marked struct {
	error
	code int
}

func (m marked) Unwrap() error { return m.error }
func (m marked) exitCode() int { return m.code }

type exited int

func (e exited) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
func (e exited) exitCode() int { return int(e) }
