package cli

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/kind"
)

// addOutput adds the flag --output json, and --json for short.
func addOutput(cmd *cobra.Command, asJSON *bool, usage string) {
	cmd.Flags().BoolVar(asJSON, "json", false, usage)
	cmd.Flags().VarP((*jsonOutput)(asJSON), "output", "o", "output format: json, the same as --json")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was added above
	}
}

// jsonOutput is the value of --output, which is "json" or missing.
type jsonOutput bool

// String returns "json" if that is the output.
func (j *jsonOutput) String() string {
	if *j {
		return "json"
	}
	return ""
}

// Set refuses all values except "json".
func (j *jsonOutput) Set(value string) error {
	if value != "json" {
		return errors.New("want json")
	}
	*j = true
	return nil
}

// Type returns the placeholder in the help text.
func (*jsonOutput) Type() string { return "format" }

// writeJSON prints the answer as indented JSON.
func writeJSON(out io.Writer, answer any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(answer)
}

// attach connects to a testbed of which all parts run.
func attach(cmd *cobra.Command, options kind.Options) (*kind.Testbed, error) {
	testbed, err := newTestbed(options)
	if err != nil {
		return nil, err
	}
	return testbed, testbed.AttachRunning(cmd.Context())
}
