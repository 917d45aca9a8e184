package nodeimage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

func (c compilation) packages() []string {
	var packages []string
	for _, p := range c.programs {
		packages = append(packages, p.pkg)
	}
	return packages
}

// arguments returns the arguments of `go build`. target is the output folder and ends in a slash.
func (c compilation) arguments(flags, target string, jobs int) []string {
	args := []string{"build", "-p", strconv.Itoa(jobs), "-o", target, "-ldflags", flags}
	if len(c.tags) > 0 {
		args = append(args, "-tags", strings.Join(c.tags, ","))
	}
	return append(args, c.packages()...)
}

// jobs returns how many programs `go build` may link at once. memory is in bytes.
func jobs(cpus int, memory uint64) int {
	const link = 2 << 30 // bytes that linking one Kubernetes program needs
	return max(1, min(cpus, int(memory/link)))
}

// memory returns the memory of this machine in bytes, or 0 if it is unknown.
func memory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return info.Totalram * uint64(info.Unit)
}

// environment returns the environment of the go command. GOFLAGS is the same as in the rest of the
// repository, so that Go's build cache is shared. GOWORK=off keeps a developer's workspace from
// changing versions.
func (c compilation) environment() []string {
	cgo := "CGO_ENABLED=0"
	if c.cgo {
		cgo = "CGO_ENABLED=1"
	}
	return append(os.Environ(), cgo, "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")
}

// run builds the programs into the folder target, under their names in the image. The go command
// creates the folder.
func (c compilation) run(ctx context.Context, modules, flags, target string) error {
	args := c.arguments(flags, target+string(filepath.Separator), jobs(runtime.NumCPU(), memory()))
	if err := c.goCommand(ctx, modules, args...); err != nil {
		return fmt.Errorf("compiling %s: %w", c.name, err)
	}
	for _, p := range c.programs {
		if err := os.Rename(filepath.Join(target, p.file()), filepath.Join(target, p.title())); err != nil {
			return err
		}
	}
	return nil
}

// fetch downloads only the modules that the programs need.
func (c compilation) fetch(ctx context.Context, modules string) error {
	return retry(ctx, fetchBackoff, "fetching the Go modules of "+c.name, func(ctx context.Context) error {
		return c.goCommand(ctx, modules, append([]string{"list", "-deps", "-f", "{{.Dir}}"}, c.packages()...)...)
	})
}

// goCommand runs the go command in the compilation's module.
func (c compilation) goCommand(ctx context.Context, modules string, args ...string) error {
	// Use -C, because kind's package exec cannot set the working directory of a process.
	args = append([]string{"-C", filepath.Join(modules, c.module)}, args...)
	_, err := command.Run(ctx, interruptible(ctx, "go", args...).SetEnv(c.environment()...))
	return err
}

// compilePause builds Kubernetes' pause program, with the flags of Kubernetes' Makefile, into the
// new folder target.
func compilePause(ctx context.Context, version, kubernetesDir, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	_, err := command.Output(ctx, "gcc", "-Os", "-Wall", "-Werror", "-static", "-DVERSION="+version,
		"-o", filepath.Join(target, "pause"), filepath.Join(kubernetesDir, "build/pause/linux/pause.c"))
	if err != nil {
		return fmt.Errorf("compiling pause: %w", err)
	}
	return nil
}
