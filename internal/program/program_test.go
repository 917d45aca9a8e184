package program_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// lacking and mistaken are error types that mark themselves.
type lacking struct{}

func (lacking) Error() string { return "no engine" }

func (lacking) EnvironmentError() {}

type mistaken struct{}

func (mistaken) Error() string { return "no such node" }

func (mistaken) UsageError() {}

func TestExitCode(t *testing.T) {
	plain := errors.New("plain")
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"no error", nil, program.ExitFine},
		{"plain", plain, program.ExitFailed},
		{"usage", fmt.Errorf("up: %w", program.Usage(plain)), program.ExitUsage},
		{"environment", fmt.Errorf("up: %w", program.Environment(plain)), program.ExitEnvironment},
		{"a type that marks itself", fmt.Errorf("up: %w", lacking{}), program.ExitEnvironment},
		{"a usage error type", fmt.Errorf("up: %w", mistaken{}), program.ExitUsage},
		{"both types", errors.Join(lacking{}, mistaken{}), program.ExitUsage},
		{"a mark on a type", fmt.Errorf("up: %w", program.Environment(mistaken{})), program.ExitEnvironment},
		{"the outermost mark", program.Usage(program.Environment(plain)), program.ExitUsage},
		{"one of several", errors.Join(plain, lacking{}), program.ExitEnvironment},
		{"a failed child process", exec.CommandContext(t.Context(), "sh", "-c", "exit 3").Run(), program.ExitFailed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := program.ExitCode(test.err); got != test.want {
				t.Errorf("exit code %d, want %d", got, test.want)
			}
		})
	}
	if program.Usage(nil) != nil || program.Environment(nil) != nil {
		t.Error("nil becomes an error")
	}
	if marked := program.Usage(plain); marked.Error() != "plain" || !errors.Is(marked, plain) {
		t.Errorf("a mark changes the error: %v", marked)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{Use: "tool", Args: cobra.ArbitraryArgs, RunE: program.Verbs}
	say := &cobra.Command{
		Use:  "say WORD",
		Args: program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Context().Err() != nil {
				return context.Cause(cmd.Context())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), args[0])
			return err
		},
	}
	root.AddCommand(say)
	for _, flag := range []string{"bold", "thin", "left", "right"} {
		say.Flags().Bool(flag, false, "")
	}
	say.MarkFlagsMutuallyExclusive("bold", "thin")
	say.MarkFlagsRequiredTogether("left", "right")
	sing := &cobra.Command{Use: "sing", RunE: func(*cobra.Command, []string) error { return errors.New("silent") }}
	sing.Flags().String("song", "", "")
	if err := sing.MarkFlagRequired("song"); err != nil {
		panic(err)
	}
	root.AddCommand(sing)
	return root
}

func TestRun(t *testing.T) {
	tests := []struct {
		name     string
		args     []string
		code     int
		out, err string // standard output, and a part of standard error
	}{
		{"fine", []string{"say", "hello"}, program.ExitFine, "hello\n", ""},
		{"no verb", nil, program.ExitUsage, "", "tool: name a command (tool --help"},
		{"unknown verb", []string{"shout"}, program.ExitUsage, "", `unknown command "shout"`},
		{"unknown flag", []string{"say", "--loud", "x"}, program.ExitUsage, "", "unknown flag: --loud"},
		{"an argument less", []string{"say"}, program.ExitUsage, "", "usage: tool say WORD"},
		{"flags that exclude each other", []string{"say", "--bold", "--thin", "x"}, program.ExitUsage, "", "[bold thin]"},
		{"half of a pair of flags", []string{"say", "--left", "x"}, program.ExitUsage, "", "[right]"},
		{"a pair of flags", []string{"say", "--left", "--right", "x"}, program.ExitFine, "x\n", ""},
		{"a required flag is missing", []string{"sing"}, program.ExitUsage, "", `"song" not set`},
		{"a failure with a required flag", []string{"sing", "--song", "x"}, program.ExitFailed, "", "silent"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			if code := program.Run(t.Context(), newRoot(), program.Streams{Out: &out, Err: &stderr}, test.args); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if out.String() != test.out {
				t.Errorf("standard output %q, want %q", out.String(), test.out)
			}
			if !strings.Contains(stderr.String(), test.err) || test.err == "" && stderr.Len() > 0 {
				t.Errorf("standard error %q, want %q in it", stderr.String(), test.err)
			}
		})
	}
}

func TestRunHandsTheContextOn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped by the test"))
	var out, stderr bytes.Buffer
	code := program.Run(ctx, newRoot(), program.Streams{Out: &out, Err: &stderr}, []string{"say", "hello"})
	if code != program.ExitFailed || !strings.Contains(stderr.String(), "stopped by the test") {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
}

// TestExit: the exit code of another program is kept, and Run adds no line to its output.
func TestExit(t *testing.T) {
	for _, test := range []struct {
		name, stderr string
		err          error
		code         int
	}{
		{"fine", "", program.Exit(0), 0},
		{"failed", "", program.Exit(1), 1},
		{"any other code", "", program.Exit(42), 42},
		{"an error that only has the text", "tool: exit code 42\n", errors.New("exit code 42"), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := &cobra.Command{Use: "tool", RunE: func(*cobra.Command, []string) error { return test.err }}
			var out, stderr bytes.Buffer
			code := program.Run(t.Context(), root, program.Streams{Out: &out, Err: &stderr}, nil)
			if code != test.code || stderr.String() != test.stderr || out.Len() > 0 {
				t.Errorf("exit code %d, standard error %q, standard output %q", code, &stderr, &out)
			}
		})
	}
}
