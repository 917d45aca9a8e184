package main

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

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

func newTestCommand(options *kind.Options) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "test [NAME...]",
		Short: "Run the scenarios with these names (default: those of the fast lane), and keep the testbed",
		Long: `Run the scenarios with these names, or those of the fast lane. The testbed gets the default
configuration, is created if it does not run, and is kept. Names are regular expressions; numbers of
field bugs (s22) stand for their scenarios. This is like make e2e KEEP=1 RUN='^(NAME|NAME)$'.`,
		Example: "  testbed test --list\n  testbed test pull-through cache-down",
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			if list {
				return runScenarios(cmd, testbed, nil, "LIST=1", "LANE=full")
			}
			return runScenarios(cmd, testbed, args)
		}),
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the names of all scenarios, and run none")
	return cmd
}

// runScenarios builds the scenarios and runs the named ones, or the fast lane without names. It
// returns their exit code as an error. The settings are environment variables, such as LIST=1.
func runScenarios(cmd *cobra.Command, testbed *kind.Testbed, names []string, settings ...string) error {
	if testbed.Prefix != kind.DefaultPrefix {
		return program.Usage(errors.New("the scenarios run on the default testbed only: omit --prefix"))
	}
	run := scenarios(cmd.Context(), filepath.Join(testbed.Root, "bin", "e2e.test"), cmd.OutOrStdout(), cmd.ErrOrStderr())
	run.Dir, run.Args = testbed.Root, append(run.Args, "-test.timeout=60m")
	run.Env = append(os.Environ(), "KEEP=1", "RUN=", "CONFIG=", "LANE=", "LIST=", "LEAVE=")
	if len(names) > 0 {
		run.Env = append(run.Env, "RUN=^("+strings.Join(names, "|")+")$")
	}
	run.Env = append(run.Env, settings...)
	if err := buildScenarios(cmd.Context(), testbed.Root, run.Path); err != nil {
		return err
	}
	err := run.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.Exited() {
		return program.Exit(failed.ExitCode())
	}
	return err
}

func buildScenarios(ctx context.Context, root, path string) error {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "e2e", "-trimpath", "-buildvcs=false", "-o", path, "./e2e")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the scenarios: %w: %s", err, out)
	}
	return nil
}

// scenarios returns the command, with its own process group. It receives only one SIGINT, when ctx
// ends: a second one, from a terminal, would kill the scenarios before they clean up.
func scenarios(ctx context.Context, program string, out, prose io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdout, cmd.Stderr = out, prose
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 4 * time.Minute
	return cmd
}
