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

// packages are what is given to `go build` and `go list`.
func (c compilation) packages() []string {
	var packages []string
	for _, p := range c.programs {
		packages = append(packages, p.pkg)
	}
	return packages
}

// arguments are those of `go build` into the folder target, which ends in a slash, with so many jobs at a time.
func (c compilation) arguments(flags, target string, jobs int) []string {
	args := []string{"build", "-p", strconv.Itoa(jobs), "-o", target, "-ldflags", flags}
	if len(c.tags) > 0 {
		args = append(args, "-tags", strings.Join(c.tags, ","))
	}
	return append(args, c.packages()...)
}

// linkMemory is what linking one program of Kubernetes takes.
const linkMemory = 2 << 30

// jobs bounds how many programs are linked at once, so that a machine with many CPUs does not run out of memory (in bytes).
func jobs(cpus int, memory uint64) int {
	return max(1, min(cpus, int(memory/linkMemory)))
}

// memory is what this machine has, in bytes.
func memory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return info.Totalram * uint64(info.Unit)
}

// environment is that of the go command. The flags equal those of the rest of the repository, so that the build cache
// is shared with it; the workspace of someone who works on the repository must not change versions.
func (c compilation) environment() []string {
	cgo := "CGO_ENABLED=0"
	if c.cgo {
		cgo = "CGO_ENABLED=1"
	}
	return append(os.Environ(), cgo, "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")
}

// run builds the programs into the new folder target; each gets the name that it has in the image.
func (c compilation) run(ctx context.Context, modules, flags, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := c.goCommand(ctx, modules, c.arguments(flags, target+string(filepath.Separator), jobs(runtime.NumCPU(), memory()))...); err != nil {
		return fmt.Errorf("compiling %s: %w", c.name, err)
	}
	for _, p := range c.programs {
		if p.file() == p.title() {
			continue
		}
		if err := os.Rename(filepath.Join(target, p.file()), filepath.Join(target, p.title())); err != nil {
			return err
		}
	}
	return nil
}

// fetch downloads the modules that the programs are made of, and no others.
func (c compilation) fetch(ctx context.Context, modules string) error {
	return retry(ctx, fetchBackoff, "fetching the Go modules of "+c.name, func(ctx context.Context) error {
		return c.goCommand(ctx, modules, append([]string{"list", "-deps", "-f", "{{.Dir}}"}, c.packages()...)...)
	})
}

// goCommand runs go in the compilation's module.
func (c compilation) goCommand(ctx context.Context, modules string, args ...string) error {
	// -C and not the process's folder: kind's exec has no way to set it.
	args = append([]string{"-C", filepath.Join(modules, c.module)}, args...)
	_, err := command.Run(ctx, interruptible(ctx, "go", args...).SetEnv(c.environment()...))
	return err
}
