package program_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestExit: the exit code of another program is kept, and no line of ours is added to what it said.
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
