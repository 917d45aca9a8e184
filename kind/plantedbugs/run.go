package plantedbugs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	runTimeout      = 15 * time.Minute               // of one run, with build and rollout
	firstRunTimeout = bringup.UpTimeout + runTimeout // which may also create the testbed
	stopTimeout     = 4 * time.Minute                // for the clean-up of an interrupted run

	resultsFolder = "_artifacts"   // the folder with the results of a run
	summaryFile   = "summary.json" // in resultsFolder, with one entry per scenario

	exitFailed      = 1       // exit code of a run if a scenario failed
	exitEnvironment = 3       // exit code if, for example, another process uses the testbed
	reasonPrefix    = "e2e: " // starts the line of the log with the reason why a run stopped
)

// runScenarios runs the scenarios of the bug, moves the results to a folder with the bug's name,
// and returns the outcomes. It keeps the testbed. planted names the bug to build into the images,
// or is "". It does not remove earlier results, which may belong to another run: the program of the
// scenarios removes them when it holds the lock.
func runScenarios(
	ctx context.Context, t *kind.Testbed, timeout time.Duration, program string, bug Mutant, planted string,
) ([]Outcome, error) {
	ctx, cancel := progress.Within(ctx, timeout, "the scenarios did not end")
	defer cancel()
	output, err := os.Create(filepath.Join(t.State.Mutants(), bug.Name+".log"))
	if err != nil {
		return nil, fmt.Errorf("create a log: %w", err)
	}
	results := filepath.Join(t.Root, resultsFolder)
	summary := filepath.Join(results, summaryFile)
	earlier := lastWritten(summary)
	cmd := scenariosCommand(ctx, program, output)
	cmd.Dir = t.Root
	cmd.Env = append(os.Environ(), "KEEP=1", "RUN=^("+strings.Join(bug.Scenarios, "|")+")$", "MUTANT="+planted, "CONFIG=", "LANE=", "LEAVE=")
	err = errors.Join(cmd.Run(), output.Close())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := runError(err, output.Name()); err != nil {
		return nil, fmt.Errorf("run the scenarios (%s): %w", t.Relative(output.Name()), err)
	}
	if lastWritten(summary).Equal(earlier) {
		return nil, fmt.Errorf("the scenarios wrote no results; see %s", t.Relative(output.Name()))
	}
	content, err := os.ReadFile(summary)
	if err != nil {
		return nil, fmt.Errorf("read the results of the scenarios: %w", err)
	}
	if err := os.Rename(results, filepath.Join(t.State.Mutants(), bug.Name)); err != nil {
		return nil, fmt.Errorf("keep the results of the scenarios: %w", err)
	}
	return ParseOutcomes(content)
}

// scenariosCommand returns the command, in its own process group. It gets one SIGINT when ctx ends:
// a second one, from a terminal, would kill the scenarios before they clean up.
func scenariosCommand(ctx context.Context, program string, output io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = stopTimeout
	return cmd
}

// lastWritten returns when the file was last written, or the zero time.
func lastWritten(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// runError returns the error of a run, or nil if only scenarios failed. log is the run's log file.
func runError(err error, log string) error {
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil, errors.As(err, &exit) && exit.ExitCode() == exitFailed:
		return nil
	case exit != nil && exit.ExitCode() == exitEnvironment:
		printed, readErr := os.ReadFile(log)
		if reason := lastReason(string(printed)); readErr == nil && reason != "" {
			err = errors.New(reason)
		}
		return &environmentError{err}
	default:
		return err
	}
}

// lastReason returns why a run stopped: the last reason in its log, or else the last line.
func lastReason(log string) string {
	reason, last := "", ""
	for line := range strings.Lines(strings.TrimSpace(log)) {
		last = strings.TrimSpace(line)
		if text, found := strings.CutPrefix(last, reasonPrefix); found {
			reason = text
		}
	}
	return cmp.Or(reason, last)
}

// environmentError is the error of runScenarios if the scenarios could not start.
type environmentError struct{ error }

func (e *environmentError) Unwrap() error { return e.error }

// EnvironmentError marks the error for internal/program.
func (*environmentError) EnvironmentError() {}

// RunScenarios builds the scenarios and runs the named ones. Without names it runs the fast lane.
// The settings are variables of the program, such as LIST=1. The error wraps an *exec.ExitError
// with the program's exit code.
func RunScenarios(ctx context.Context, t *kind.Testbed, names []string, out, prose io.Writer, settings ...string) error {
	if t.Prefix != kind.DefaultPrefix {
		return fmt.Errorf("the scenarios run on the testbed %s, not on %s", kind.DefaultPrefix, t.Prefix)
	}
	program, err := buildScenarios(ctx, t, nil)
	if err != nil {
		return err
	}
	cmd := scenariosCommand(ctx, program, out)
	cmd.Stderr, cmd.Dir, cmd.Args = prose, t.Root, append(cmd.Args, "-test.timeout=60m")
	cmd.Env = append(os.Environ(), "KEEP=1", "RUN=", "MUTANT=", "CONFIG=", "LANE=", "LIST=", "LEAVE=")
	if len(names) > 0 {
		cmd.Env = append(cmd.Env, "RUN=^("+strings.Join(names, "|")+")$")
	}
	cmd.Env = append(cmd.Env, settings...)
	err = cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return fmt.Errorf("run the scenarios: %w", err)
	}
	return err
}
