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
)

// Execute runs one command line of `testbed`, without its name, and returns the exit code. The
// answer goes to out, progress and prose to err.
type Execute func(ctx context.Context, args []string, out, err io.Writer) int

// Rig is what a bug is reproduced with.
type Rig struct {
	execute    Execute
	transcript io.Writer
	progress   func(command string)
	result     *Result
	script     script
	// undo is run when the bug has ended.
	undo []func(context.Context) error
}

// Afterwards undoes something when the bug has ended, however it has.
func (r *Rig) Afterwards(undo func(ctx context.Context) error) { r.undo = append(r.undo, undo) }

// beside is a rig for what is done at the same time as something else: the page has a note of it,
// and not its commands.
func (r *Rig) beside() *Rig {
	return &Rig{execute: r.execute, transcript: io.Discard, result: &Result{ID: r.result.ID}}
}

// Note tells the page what is no command line of `testbed`: a time that has to pass, or what goes
// on beside.
func (r *Rig) Note(text string) { r.show(func() { r.script.note(text) }) }

// show hands the lines over that are new in the script.
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

// CommandError is a command line that failed.
type CommandError struct {
	Line string
	Code int
	// Output is what it wrote to standard error.
	Output string
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", e.Line, e.Code, lastLine(e.Output))
}

// lastLine is where a command says why it failed: progress and the command lines that it ran come
// before.
func lastLine(output string) string {
	output = strings.TrimSpace(output)
	return output[strings.LastIndex(output, "\n")+1:]
}

// Testbed runs a command line and returns its answer. The error is a *CommandError, and the answer
// what it wrote all the same.
func (r *Rig) Testbed(ctx context.Context, args ...string) (string, error) {
	r.show(func() { r.script.run(args) })
	return r.run(ctx, args)
}

// Ask is Testbed for an answer of one word that later command lines need: the page has it as the
// variable of that name.
func (r *Rig) Ask(ctx context.Context, name string, args ...string) (string, error) {
	var variable string
	r.show(func() { variable = r.script.ask(name, args) })
	out, err := r.run(ctx, args)
	if err != nil {
		return "", err
	}
	words := strings.Fields(out)
	if len(words) != 1 {
		return "", fmt.Errorf("%s: answered %q, want one word: the %s", commandLine(args), out, name)
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

// answer runs a command line with --json and decodes what it answers, also when it failed.
func (r *Rig) answer(ctx context.Context, into any, args ...string) error {
	r.show(func() { r.script.run(args) })
	return r.decode(ctx, into, args)
}

func (r *Rig) decode(ctx context.Context, into any, args []string) error {
	out, err := r.run(ctx, append(slices.Clone(args), "--json"))
	if out == "" {
		return err
	}
	if broken := json.Unmarshal([]byte(out), into); broken != nil && err == nil {
		return fmt.Errorf("%s: answer: %w", commandLine(args), broken)
	}
	return err
}

// Await looks until done says so, for at most the bound. The error names what was awaited and the
// state that was seen last.
func (r *Rig) Await(ctx context.Context, what string, bound time.Duration, done func(ctx context.Context) (ok bool, state string, err error)) error {
	var end func()
	r.show(func() { end = r.script.again(what) })
	defer end()
	last := "not looked at"
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

// commandLine is what was typed in this run.
func commandLine(args []string) string {
	words := []string{"testbed"}
	for _, arg := range args {
		words = append(words, quoted(arg))
	}
	return strings.Join(words, " ")
}

// quoted is the argument as a shell takes it.
func quoted(arg string) string {
	if arg != "" && !strings.ContainsFunc(arg, func(c rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+", c)
	}) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
