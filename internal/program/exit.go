package program

import (
	"errors"
	"fmt"
)

// Exit codes of every command.
const (
	ExitFine        = 0 // success
	ExitFailed      = 1 // an operation or a check failed
	ExitUsage       = 2 // wrong flags, arguments or configuration: the same call fails again
	ExitEnvironment = 3 // the machine, the network or the testbed is not ready: the same call may succeed later
)

// UsageError marks error types: every error that implements it is a usage error.
type UsageError interface{ UsageError() }

// EnvironmentError marks error types: every error that implements it is an environment error.
type EnvironmentError interface{ EnvironmentError() }

// Usage marks err as a usage error. The text does not change, and nil stays nil.
func Usage(err error) error { return mark(err, ExitUsage) }

// Environment marks err as an environment error. The text does not change, and nil stays nil.
func Environment(err error) error { return mark(err, ExitEnvironment) }

func mark(err error, code int) error {
	if err == nil {
		return nil
	}
	return marked{err, code}
}

// Exit returns the error for a command whose child process ended with the exit code, or nil for 0.
// Run returns the code and prints nothing, because the child process has printed its own messages.
func Exit(code int) error {
	if code == ExitFine {
		return nil
	}
	return exited(code)
}

// ExitCode returns ExitFine for nil. Otherwise it returns the exit code of the first of these that
// is in the error chain: the outermost error from Usage, Environment or Exit; a UsageError; an
// EnvironmentError. If the chain contains none of these, it returns ExitFailed.
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
