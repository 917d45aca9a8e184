// Package command runs programs with kind's exec package, on the host or on a node. Its errors
// contain the command line, the end of the output, and the cause if a timeout ended the program. It
// also ends the programs that a killed testbed command has left behind.
//
// The package must not contain code for any particular program.
package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"
)

// tailLines limits how many lines of a failed command's output the error message contains.
const tailLines = 8

// Error is the error of a failed command. It unwraps to kind's *exec.RunError, which contains the
// argv and the full output.
type Error struct {
	*exec.RunError
	Cause error // context.Cause of the context, if the context ended
}

// Error returns the command, the failure and the last lines of the output.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v", e.PrettyCommand(), cmp.Or(e.Cause, e.Inner))
	if tail := Tail(string(e.Output), tailLines); tail != "" {
		text += ": " + tail
	}
	return text
}

// Unwrap returns kind's RunError, its inner error, and the context's cause if there is one.
func (e *Error) Unwrap() []error {
	wrapped := []error{e.RunError, e.Inner}
	if e.Cause != nil {
		wrapped = append(wrapped, e.Cause)
	}
	return wrapped
}

// Output runs a program on the host and returns its standard output. If the program fails, the
// error is an *Error.
func Output(ctx context.Context, argv ...string) (string, error) {
	return Run(ctx, exec.CommandContext(ctx, argv[0], argv[1:]...))
}

// Run runs a command that was created for ctx and returns its standard output. If the command
// fails, the error is an *Error.
func Run(ctx context.Context, cmd exec.Cmd) (string, error) {
	out, err := exec.Output(cmd)
	return string(out), Explain(ctx, err)
}

// Explain turns kind's error of a failed command into an *Error, which contains the output. It
// returns other errors unchanged.
func Explain(ctx context.Context, err error) error {
	failed := exec.RunErrorForError(err)
	if failed == nil {
		return err
	}
	return &Error{RunError: failed, Cause: context.Cause(ctx)}
}

// Tail returns the last n lines of text without surrounding white space.
func Tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
