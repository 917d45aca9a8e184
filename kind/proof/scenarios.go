package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
)

// RunScenarios builds the program of the scenarios and runs those with these names, or without
// names the fast lane, as `make e2e KEEP=1` does. If list is true, it only prints the names of all
// scenarios. The error wraps an *exec.ExitError with the exit code of the program.
func RunScenarios(ctx context.Context, t *kind.Testbed, names []string, list bool, out, prose io.Writer) error {
	if t.Prefix != kind.DefaultPrefix {
		return fmt.Errorf("the scenarios run on the testbed %s, not on %s", kind.DefaultPrefix, t.Prefix)
	}
	program, err := buildScenarios(ctx, t, nil)
	if err != nil {
		return err
	}
	cmd := scenariosCommand(ctx, program, out)
	cmd.Stderr, cmd.Dir, cmd.Args = prose, t.Root, append(cmd.Args, "-test.timeout=60m")
	cmd.Env = append(os.Environ(), "KEEP=1", "RUN=", "MUTANT=", "CONFIG=", "LANE=", "LIST=")
	if len(names) > 0 {
		cmd.Env = append(cmd.Env, "RUN=^("+strings.Join(names, "|")+")$")
	}
	if list {
		cmd.Env = append(cmd.Env, "LIST=1", "LANE=full")
	}
	if err := cmd.Run(); err != nil {
		if code := (*exec.ExitError)(nil); !errors.As(err, &code) {
			return fmt.Errorf("run the scenarios: %w", err)
		}
		return err
	}
	return nil
}
