// Command bench measures. `bench controller` measures what the extension costs on a seed with 10 to
// 3,000 shoots, see docs/operations.md. `bench cache` compares the cache with a stock distribution,
// nginx and downloads without a cache, see docs/benchmarks.md.
//
// A missed goal is an error only with --strict, because a busy machine gives bad numbers.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/internal/program"
)

func main() { os.Exit(program.Main(newCommand)) }

func newCommand(streams program.Streams) *cobra.Command {
	root := &cobra.Command{
		Use: "bench", Short: "Measure the extension, or compare caches", Args: cobra.ArbitraryArgs, RunE: program.Verbs,
	}
	root.AddCommand(newControllerCommand(streams), newCacheCommand(streams))
	return root
}

// output are the flags that both benchmarks have.
type output struct {
	json, strict bool
	folder       string
}

func (o *output) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.json, "json", false, "print the measured values as JSON instead of Markdown")
	flags.BoolVar(&o.strict, "strict", false, "exit with 1 if a goal is missed")
	flags.StringVar(&o.folder, "folder", filepath.Join("_artifacts", "bench-"+cmd.Name()), "folder for programs, volumes and logs")
}

// prepare creates the folder.
func (o *output) prepare() (err error) {
	if o.folder, err = filepath.Abs(o.folder); err != nil {
		return program.Usage(fmt.Errorf("--folder: %w", err))
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return program.Environment(fmt.Errorf("create the folder for logs: %w", err))
	}
	return nil
}

// report prints a report. With --strict, a missed goal is an error.
func (o *output) report(report interface{ Markdown() string }, goals []bench.Goal, out io.Writer) error {
	text := []byte(report.Markdown())
	if o.json {
		var err error
		if text, err = json.MarshalIndent(report, "", "  "); err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		text = append(text, '\n')
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	for _, goal := range goals {
		if o.strict && len(goal.Missed) > 0 {
			return fmt.Errorf("missed goal: %s (%s)", goal.Name, strings.Join(goal.Missed, "; "))
		}
	}
	return nil
}
