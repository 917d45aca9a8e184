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
		asJSON, verbose bool
		record          string
	)
	cmd := &cobra.Command{
		Use:   "reproduce BUG...",
		Short: "Reproduce bugs of the field on the testbed that is up, and say what came of each",
		Long: "Reproduce bugs of the field (docs/field-bugs.md) on the testbed that is up. Command lines go to standard error while they\n" +
			"are run, what they answer into a file below " + transcripts + ", which is named first; the verdict to standard output.\n" +
			"known is the verdict on what is not reached yet, for the reason that is known: that is no failure.\n\n" +
			"A bug replaces the Shoot of the testbed by its own, and clears all faults, before and after. Afterwards the Shoot that was\n" +
			"there is applied again; what its caches have stored may be gone. Without a Shoot, or in a Shoot that sleeps, that of the\n" +
			"last bug stays. Bugs need the default testbed: another prefix is refused; another number of workers or other upstreams are\n" +
			"not what they are about. Exits with 1 if a verdict is not the expected one.\n\n" +
			listBugs(),
		Example: "  testbed reproduce s22",
		Args:    program.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
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
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print what the command lines answer, too")
	cmd = withDryRun(completed(cmd, options, nameBugs), std, func(_ *cobra.Command, args []string) ([]string, error) { return planBugs(args) })
	cmd.Flags().StringVar(&record, "record", "", "put the results into this `file`, for the page")
	return cmd
}

// transcripts is where what was run and answered is kept, below the root of the repository.
const transcripts = "_artifacts/reproduce"

// reproduceBug shows which command lines are run, with the seconds since it began, and keeps what they answer.
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

// checkReproducible refuses, before anything is changed, what no bug can be reproduced with: its command lines name files of the
// repository, and hosts of the default testbed.
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

// explainResult keeps what of a bug was a matter of the environment: a testbed that is not up, for example.
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

// planBugs returns the commands that the last recorded run of each bug was made of: what a bug does next depends on what is answered.
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

func listBugs() string {
	text := ""
	for _, bug := range fieldbugs.All() {
		text += fmt.Sprintf("  %-4s %s\n", bug.ID, bug.Title)
	}
	return text
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
