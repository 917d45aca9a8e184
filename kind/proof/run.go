package proof

import (
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
	// proofTimeout bounds one run of scenarios, with what it builds and rolls out, firstProofTimeout the first one, which may have to
	// bring the testbed up from nothing; stopTimeout is what an interrupted one gets to clean up.
	proofTimeout      = 15 * time.Minute
	firstProofTimeout = bringup.UpTimeout + proofTimeout
	stopTimeout       = 4 * time.Minute

	// scenariosResults is where a run of scenarios writes what it found, scenariosSummary the file in it with how each of them ended.
	scenariosResults = "_artifacts"
	scenariosSummary = "summary.json"
)

// runScenarios runs those that the bug names on the testbed, which is kept, and returns how they ended. planted is the bug that what
// ships is built with. What the run leaves is moved to a folder of the bug's name. What an earlier one has left is removed by this one,
// once the testbed is its own: before, it may be that of another run that is still at work.
func runScenarios(
	ctx context.Context, t *kind.Testbed, timeout time.Duration, program string, bug Mutant, planted string,
) ([]Outcome, error) {
	ctx, cancel := progress.Within(ctx, timeout, "the scenarios did not end")
	defer cancel()
	output, err := os.Create(filepath.Join(t.State.Mutants(), bug.Name+".log"))
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	results := filepath.Join(t.Root, scenariosResults)
	summary := filepath.Join(results, scenariosSummary)
	earlier := lastWritten(summary)
	cmd := scenariosCommand(ctx, program, output)
	cmd.Dir = t.Root
	cmd.Env = append(os.Environ(), "KEEP=1", "RUN=^("+strings.Join(bug.Scenarios, "|")+")$", "MUTANT="+planted, "CONFIG=", "LANE=")
	err = errors.Join(cmd.Run(), output.Close())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := judgeRun(err, output.Name()); err != nil {
		return nil, fmt.Errorf("run the scenarios (%s): %w", t.Relative(output.Name()), err)
	}
	if lastWritten(summary).Equal(earlier) {
		return nil, fmt.Errorf("the scenarios wrote no results; see %s", t.Relative(output.Name()))
	}
	found, err := os.ReadFile(summary)
	if err != nil {
		return nil, fmt.Errorf("read what the scenarios found: %w", err)
	}
	if err := os.Rename(results, filepath.Join(t.State.Mutants(), bug.Name)); err != nil {
		return nil, fmt.Errorf("keep what the scenarios found: %w", err)
	}
	return ParseOutcomes(found)
}

// scenariosCommand runs the scenarios in a process group of their own: Ctrl-C at a terminal reaches all of the group in front, and a
// second signal ends them at once, without the clean-up. They get one, when ctx ends.
func scenariosCommand(ctx context.Context, program string, output io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = stopTimeout
	return cmd
}

// lastWritten is when the file was written last; zero if it is not there.
func lastWritten(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
