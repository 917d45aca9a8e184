package nodeimage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// pauseSource is the source of the pause program in Kubernetes' module.
const pauseSource = "build/pause/linux/pause.c"

// pauseArguments returns those of the C compiler, as in Kubernetes' Makefile.
func pauseArguments(kubernetesDir, target string) []string {
	return []string{
		"-Os", "-Wall", "-Werror", "-static", "-DVERSION=" + KubernetesVersion,
		"-o", filepath.Join(target, "pause"), filepath.Join(kubernetesDir, pauseSource),
	}
}

// compilePause builds Kubernetes' pause program into the new folder target.
func compilePause(ctx context.Context, kubernetesDir, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if _, err := command.Output(ctx, append([]string{"gcc"}, pauseArguments(kubernetesDir, target)...)...); err != nil {
		return fmt.Errorf("compiling pause: %w", err)
	}
	return nil
}
