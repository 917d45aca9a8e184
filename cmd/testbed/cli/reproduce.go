package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fieldbugs"
)

// transcripts is the folder for the output of commands, relative to the root of the repository.
const transcripts = "_artifacts/reproduce"

func newReproduceCommand(options *kind.Options) *cobra.Command {
	var (
		verbose, list bool
		record        string
		bugs          []fieldbugs.Bug
	)
	cmd := withJSON(&cobra.Command{
		Use:   "reproduce BUG...",
		Short: "Reproduce field bugs on a running testbed and print the result of each",
		Long: `Reproduce field bugs (docs/field-bugs.md) on a running testbed. A bug has a number and a name: s22
is service-recreated. --list prints them all.

Command lines are printed to standard error when they run, verdicts to standard output. The output
of the commands is stored in ` + transcripts + `; the name of the file is printed first. The
verdict "known" means that the bug is not fixed yet, for a known reason. It is not a failure.

Each bug replaces the Shoot of the testbed with its own. Before and after, all faults are removed.
At the end the previous Shoot is applied again; its caches may be empty. If there was no Shoot, or
the Shoot was hibernated, the Shoot of the last bug stays. Bugs need the default testbed: two
workers, the default upstreams and the default prefix. The exit code is 1 if a verdict is unexpected.`,
		Example:           "  testbed reproduce --list\n  testbed reproduce service-recreated",
		ValidArgsFunction: complete(options, bugNames),
		Args: program.Args(func(cmd *cobra.Command, args []string) error {
			if list {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		}),
		PreRunE: func(_ *cobra.Command, args []string) error {
			for _, id := range args {
				bug, err := fieldbugs.Find(id)
				if err != nil {
					return program.Usage(err)
				}
				bugs = append(bugs, bug)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return fieldbugs.WriteList(cmd.OutOrStdout())
			}
			if err := checkReproducible(options.Prefix); err != nil {
				return program.Usage(err)
			}
			restore, err := fieldbugs.KeepShoot(cmd.Context(), executeBeside(options), cmd.ErrOrStderr())
			if err != nil {
				return program.Environment(err)
			}
			var failed []error
			for _, bug := range bugs {
				result, err := reproduceBug(cmd, bug, options, verbose)
				if err == nil {
					err = answer(cmd, result, func(out io.Writer) error { return writeResult(out, bug, result) })
				}
				if err != nil {
					failed = append(failed, err)
					break
				}
				if record != "" {
					failed = append(failed, fieldbugs.Record(record, result))
				}
				if !result.Good() {
					failed = append(failed, resultError(result))
				}
				if cmd.Context().Err() != nil {
					break
				}
			}
			return errors.Join(append(failed, restore(cmd.Context()))...)
		},
	}, "print JSON, one object for each bug")
	cmd.Flags().BoolVar(&list, "list", false, "print the number, name and title of each bug, and reproduce none")
	cmd.MarkFlagsMutuallyExclusive("list", "json")
	cmd.MarkFlagsMutuallyExclusive("list", "output")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print the output of the commands")
	cmd.Flags().StringVar(&record, "record", "", "also write the results to this `file`; use _artifacts/field-bugs.json to update the docs by make field-bugs")
	return withDryRun(cmd, options, func(*cobra.Command, *kind.Testbed, []string) ([]string, error) { return planBugs(bugs) })
}

// reproduceBug prints the command lines with their start times, and stores their output in a file.
func reproduceBug(cmd *cobra.Command, bug fieldbugs.Bug, options *kind.Options, verbose bool) (*fieldbugs.Result, error) {
	if err := os.MkdirAll(transcripts, 0o750); err != nil {
		return nil, fmt.Errorf("create the transcript: %w", err)
	}
	transcript, err := os.Create(filepath.Join(transcripts, bug.ID+".txt"))
	if err != nil {
		return nil, fmt.Errorf("create the transcript: %w", err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s, %s; output of the commands: %s\n", bug.ID, bug.Title, transcript.Name())
	start := time.Now()
	reproduction := fieldbugs.Options{Transcript: transcript, Progress: func(command string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%5.0fs  %s\n", time.Since(start).Seconds(), command)
	}}
	if verbose {
		reproduction.Transcript = io.MultiWriter(transcript, cmd.ErrOrStderr())
	}
	result := fieldbugs.Reproduce(cmd.Context(), bug, executeBeside(options), reproduction)
	return result, transcript.Close()
}

// checkReproducible returns an error if bugs cannot be reproduced with this prefix or in the
// current folder. Their command lines name files of the repository and hosts of the default
// testbed.
func checkReproducible(prefix string) error {
	if prefix != kind.DefaultPrefix {
		return fmt.Errorf("bugs are reproduced on the testbed %s, and not on %s: their Shoots name its upstreams", kind.DefaultPrefix, prefix)
	}
	if _, err := os.Stat(fieldbugs.TwoCaches); err != nil {
		return fmt.Errorf("run it in the root of the repository, because the bugs need its files: %w", err)
	}
	return nil
}

// executeBeside returns a function that runs command lines in this process, for the same testbed.
func executeBeside(options *kind.Options) fieldbugs.Execute {
	return func(ctx context.Context, args []string, out, prose io.Writer) int {
		std := program.Streams{Out: out, Err: prose}
		root := New(std)                  //nolint:contextcheck // its commands get ctx from program.Run
		root.SetIn(strings.NewReader("")) // commands of a bug must not read the input of this command
		return program.Run(ctx, root, std, append([]string{"--prefix", options.Prefix}, args...))
	}
}

// resultError returns the error for a failed reproduction: an environment error if one of its
// commands failed with one, for example because the testbed is down.
func resultError(result *fieldbugs.Result) error {
	err := errors.New(result.String())
	if command := (*fieldbugs.CommandError)(nil); errors.As(result.Err, &command) && command.Code == program.ExitEnvironment {
		return program.Environment(err)
	}
	return err
}

// planBugs returns the commands of the last recorded run of each bug. Another run may differ,
// because a command can depend on the output of earlier ones.
func planBugs(bugs []fieldbugs.Bug) ([]string, error) {
	results, err := fieldbugs.Measured()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, bug := range bugs {
		lines = append(lines, "# "+bug.ID+": "+bug.Title)
		if i := slices.IndexFunc(results, func(r fieldbugs.Result) bool { return r.ID == bug.ID }); i >= 0 {
			lines = append(lines, results[i].Commands...)
		}
	}
	return lines, nil
}

func writeResult(out io.Writer, bug fieldbugs.Bug, result *fieldbugs.Result) error {
	fmt.Fprintf(out, "verdict on %s, %s: %s (%.0fs)\n", bug.ID, bug.Title, result.Verdict, result.Seconds)
	for _, evidence := range result.Evidence {
		fmt.Fprintf(out, "  ✓ %s\n", evidence)
	}
	if result.Reason != "" {
		fmt.Fprintf(out, "  ✗ %s\n", result.Reason)
	}
	return nil
}
