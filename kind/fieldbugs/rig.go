package fieldbugs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// Execute runs `testbed` with the arguments and returns the exit code. It writes the result to out,
// and progress and messages to err.
type Execute func(ctx context.Context, args []string, out, err io.Writer) int

// Rig runs the commands of a bug and records them.
type Rig struct {
	execute Execute
	// output runs a program of this machine and returns its standard output; nil means command.Output.
	output     func(ctx context.Context, argv ...string) (string, error)
	transcript io.Writer
	progress   func(command string)
	result     *Result
	script     script
	undo       []func(context.Context) error
}

// Afterwards calls undo when the bug has ended, even after a failure.
func (r *Rig) Afterwards(undo func(ctx context.Context) error) { r.undo = append(r.undo, undo) }

// background returns a rig for commands that run at the same time as others. The rig does not
// record its commands; instead, the caller adds a Note.
func (r *Rig) background() *Rig {
	return &Rig{execute: r.execute, transcript: io.Discard, result: &Result{ID: r.result.ID}}
}

// Note records a comment about something that is not a command of `testbed`, such as a wait.
func (r *Rig) Note(text string) { r.show(func() { r.script.note(text) }) }

// show calls the function write, and calls r.progress with each line that write adds to the script.
func (r *Rig) show(write func()) {
	before := len(r.script.lines)
	write()
	if r.progress == nil {
		return
	}
	for _, l := range r.script.lines[before:] {
		r.progress(strings.Join(l.commands(), "\n"))
	}
}

// CommandError is the failure of a command.
type CommandError struct {
	Line   string
	Code   int
	Output string // standard error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", e.Line, e.Code, command.Tail(e.Output, 1))
}

// Testbed runs a command and returns its standard output, even if the command fails. The error of a
// failed command is a *CommandError.
func (r *Rig) Testbed(ctx context.Context, args ...string) (string, error) {
	r.show(func() { r.script.run(args) })
	return r.run(ctx, args)
}

// Ask runs a command that prints one word, and returns the word. In the recorded commands, the word
// becomes a variable with this name, which later commands use.
func (r *Rig) Ask(ctx context.Context, name string, args ...string) (string, error) {
	var variable string
	r.show(func() { variable = r.script.ask(name, args) })
	out, err := r.run(ctx, args)
	if err != nil {
		return "", err
	}
	words := strings.Fields(out)
	if len(words) != 1 {
		return "", fmt.Errorf("%s: printed %q, want one word: the %s", commandLine(args), out, name)
	}
	r.script.bind(words[0], "${"+variable+"}", nil)
	return words[0], nil
}

func (r *Rig) run(ctx context.Context, args []string) (string, error) {
	line := commandLine(args)
	var out, prose bytes.Buffer
	fmt.Fprintf(r.transcript, "$ %s\n", line)
	code := r.execute(ctx, args, io.MultiWriter(&out, r.transcript), io.MultiWriter(&prose, r.transcript))
	switch {
	case ctx.Err() != nil:
		return out.String(), fmt.Errorf("%s: %w", line, context.Cause(ctx))
	case code != 0:
		return out.String(), &CommandError{Line: line, Code: code, Output: prose.String()}
	}
	return out.String(), nil
}

// runJSON runs a command with --json and decodes its output, even if the command failed.
func (r *Rig) runJSON(ctx context.Context, into any, args ...string) error {
	r.show(func() { r.script.run(args) })
	return r.decode(ctx, into, args)
}

func (r *Rig) decode(ctx context.Context, into any, args []string) error {
	out, err := r.run(ctx, append(slices.Clone(args), "--json"))
	if out == "" {
		return err
	}
	if broken := json.Unmarshal([]byte(out), into); broken != nil && err == nil {
		return fmt.Errorf("%s: decode the output: %w", commandLine(args), broken)
	}
	return err
}

// Await calls the function done every second until done returns true or an error, or until the
// bound has passed. The error names what was awaited and the last state.
func (r *Rig) Await(ctx context.Context, what string, bound time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) error {
	var end func()
	r.show(func() { end = r.script.startLoop(what) })
	defer end()
	last := "none"
	err := wait.PollUntilContextTimeout(ctx, time.Second, bound, true, func(ctx context.Context) (bool, error) {
		ok, state, err := done(ctx)
		if ctx.Err() == nil {
			last = state
		}
		return ok, err
	})
	if err != nil {
		return fmt.Errorf("waited up to %s until %s; last seen: %s: %w", bound, what, last, err)
	}
	return nil
}

// commandLine returns the command line as it runs. script.commandLine returns it with variables.
func commandLine(args []string) string {
	words := []string{"testbed"}
	for _, arg := range args {
		words = append(words, quoted(arg))
	}
	return strings.Join(words, " ")
}

func quoted(arg string) string {
	if arg != "" && !strings.ContainsFunc(arg, func(c rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+", c)
	}) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
