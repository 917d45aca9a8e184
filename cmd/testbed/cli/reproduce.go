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

func newReproduceCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var (
		asJSON, verbose, list bool
		record                string
	)
	cmd := &cobra.Command{
		Use:   "reproduce BUG...",
		Short: "Reproduce field bugs on a running testbed and print the result of each",
		Long: `Reproduce field bugs (docs/field-bugs.md) on a running testbed. A bug has a number and a name: s22 is
service-recreated. --list prints them all.

Standard error has the command lines as they run, standard output has the verdict of each bug. The
output of the commands is in a file below ` + transcripts + `, named first. The verdict "known"
means that the bug is not fixed yet, for a known reason: that is not a failure.

Each bug replaces the Shoot of the testbed with its own and removes all faults, before and after.
At the end the previous Shoot is applied again; its caches may be empty. If there was no Shoot, or
it was hibernated, the Shoot of the last bug stays. Bugs need the default testbed: two workers, the
default upstreams and no other prefix. The exit code is 1 if a verdict is not the expected one.`,
		Example: "  testbed reproduce --list\n  testbed reproduce service-recreated",
		Args: program.Args(func(cmd *cobra.Command, args []string) error {
			if list {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return fieldbugs.WriteList(std.Out)
			}
			bugs, err := findBugs(args)
			if err == nil {
				err = checkReproducible(options.Prefix)
			}
			if err != nil {
				return program.Usage(err)
			}
			restore, err := fieldbugs.KeepShoot(cmd.Context(), executeBeside(options), std.Err)
			if err != nil {
				return program.Environment(err)
			}
			var failed []error
			for _, bug := range bugs {
				result, err := reproduceBug(cmd.Context(), bug, options, std, verbose)
				if err != nil {
					failed = append(failed, err)
					break
				}
				if err := printResult(std.Out, bug, result, asJSON); err != nil {
					failed = append(failed, err)
					break
				}
				if record != "" {
					failed = append(failed, fieldbugs.Record(record, result))
				}
				if !result.Good() {
					failed = append(failed, explainResult(result))
				}
				if cmd.Context().Err() != nil {
					break
				}
			}
			return errors.Join(append(failed, restore(cmd.Context()))...)
		},
	}
	addOutput(cmd, &asJSON, "print JSON, one object for each bug")
	cmd.Flags().BoolVar(&list, "list", false, "print the number, name and title of each bug, and run none")
	cmd.MarkFlagsMutuallyExclusive("list", "json")
	cmd.MarkFlagsMutuallyExclusive("list", "output")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print the output of the commands too")
	cmd = withDryRun(completed(cmd, options, nameBugs), std, func(_ *cobra.Command, args []string) ([]string, error) { return planBugs(args) })
	cmd.Flags().StringVar(&record, "record", "", "write the results to this `file`, for docs/field-bugs.md")
	return cmd
}

// transcripts is where what was run and answered is kept, below the root of the repository.
const transcripts = "_artifacts/reproduce"

// reproduceBug shows which command lines are run, with the seconds since it began, and keeps what
// they answer.
func reproduceBug(ctx context.Context, bug fieldbugs.Bug, options *kind.Options, std program.Streams, verbose bool) (*fieldbugs.Result, error) {
	transcript, err := createTranscript(bug.ID)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(std.Err, "%s, %s; answers: %s\n", bug.ID, bug.Title, transcript.Name())
	start := time.Now()
	reproduction := fieldbugs.Options{Transcript: transcript, Progress: func(command string) {
		fmt.Fprintf(std.Err, "%5.0fs  %s\n", time.Since(start).Seconds(), command)
	}}
	if verbose {
		reproduction.Transcript = io.MultiWriter(transcript, std.Err)
	}
	result := fieldbugs.Reproduce(ctx, bug, executeBeside(options), reproduction)
	return result, transcript.Close()
}

func createTranscript(id string) (*os.File, error) {
	if err := os.MkdirAll(transcripts, 0o750); err != nil {
		return nil, fmt.Errorf("keep the answers: %w", err)
	}
	transcript, err := os.Create(filepath.Join(transcripts, id+".txt"))
	if err != nil {
		return nil, fmt.Errorf("keep the answers: %w", err)
	}
	return transcript, nil
}

// checkReproducible refuses, before anything is changed, what no bug can be reproduced with: its
// command lines name files of the repository, and hosts of the default testbed.
func checkReproducible(prefix string) error {
	if prefix != kind.DefaultPrefix {
		return fmt.Errorf("bugs are reproduced on the testbed %s, and not on %s: their Shoots name its upstreams", kind.DefaultPrefix, prefix)
	}
	if _, err := os.Stat(fieldbugs.TwoCaches); err != nil {
		return fmt.Errorf("run it in the root of the repository, to which the command lines of the bugs are relative: %w", err)
	}
	return nil
}

// executeBeside executes command lines as this process would, for the same testbed.
func executeBeside(options *kind.Options) fieldbugs.Execute {
	return func(ctx context.Context, args []string, out, prose io.Writer) int {
		std := program.Streams{Out: out, Err: prose}
		root := New(std)                  //nolint:contextcheck // program.Run hands it over
		root.SetIn(strings.NewReader("")) // what a bug runs must not read the input of who reproduces it
		return program.Run(ctx, root, std, append([]string{"--prefix", options.Prefix}, args...))
	}
}

// explainResult keeps what of a bug was a matter of the environment: a testbed that is not up, for
// example.
func explainResult(result *fieldbugs.Result) error {
	err := errors.New(result.String())
	if command := (*fieldbugs.CommandError)(nil); errors.As(result.Err, &command) && command.Code == program.ExitEnvironment {
		return program.Environment(err)
	}
	return err
}

func findBugs(ids []string) ([]fieldbugs.Bug, error) {
	var bugs []fieldbugs.Bug
	for _, id := range ids {
		bug, err := fieldbugs.Find(id)
		if err != nil {
			return nil, err
		}
		bugs = append(bugs, bug)
	}
	return bugs, nil
}

// planBugs returns the commands that the last recorded run of each bug was made of: what a bug does
// next depends on what is answered.
func planBugs(ids []string) ([]string, error) {
	bugs, err := findBugs(ids)
	if err != nil {
		return nil, program.Usage(err)
	}
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

func printResult(out io.Writer, bug fieldbugs.Bug, result *fieldbugs.Result, asJSON bool) error {
	if asJSON {
		return writeJSON(out, result)
	}
	fmt.Fprintf(out, "verdict on %s, %s: %s (%.0fs)\n", bug.ID, bug.Title, result.Verdict, result.Seconds)
	for _, evidence := range result.Evidence {
		fmt.Fprintf(out, "  ✓ %s\n", evidence)
	}
	if result.Reason != "" {
		fmt.Fprintf(out, "  ✗ %s\n", result.Reason)
	}
	return nil
}
