package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// shimPath is outside the repository, since the engine outlives a checkout.
	shimPath    = "/usr/local/lib/registry-cache-testbed/runcshim"
	shimPackage = "github.com/gardener-extensions/registry-cache/kind/engine/runcshim"
	shimRuntime = "registry-cache-testbed"
	shimTimeout = 3 * time.Minute
)

// buildShim builds the OCI runtime shim from this module and installs it at shimPath. If the build
// fails, for example outside the module, it keeps an installed shim.
func buildShim(ctx context.Context) error {
	ctx, cancel := progress.Within(ctx, shimTimeout, "the runc shim was not built")
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(shimPath), 0o755); err != nil {
		return fmt.Errorf("installing the runc shim: %w", err)
	}
	// The rename replaces atomically a shim that is in use.
	temp := shimPath + ".new"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", temp, shimPackage)
	cmd.SetEnv(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")...)
	if _, err := command.Run(ctx, cmd); err != nil {
		if _, statErr := os.Stat(shimPath); statErr == nil && ctx.Err() == nil {
			progress.Note(ctx, "using the runc shim of an earlier run")
			return nil
		}
		return fmt.Errorf("building the runc shim (must run in the repository): %w", err)
	}
	return os.Rename(temp, shimPath)
}

// daemonFlags returns dockerd's flags: the managed label and, if shim, the shim as default runtime.
func daemonFlags(shim bool) []string {
	flags := []string{"--label=" + managedLabel}
	if shim {
		flags = append(flags, "--add-runtime="+shimRuntime+"="+shimPath, "--default-runtime="+shimRuntime)
	}
	return flags
}
