package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/kind"
)

// writeJSON prints an answer for programs.
func writeJSON(out io.Writer, answer any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(answer)
}

// attach connects to the testbed that is up, and of which all runs.
func attach(cmd *cobra.Command, options kind.Options) (*kind.Testbed, error) {
	testbed, err := newTestbed(options)
	if err != nil {
		return nil, err
	}
	return testbed, testbed.AttachRunning(cmd.Context())
}
