package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// settings are the flags that one run of go build uses for all its packages.
type settings struct {
	module, ldflags string
	debug           bool
}

func (b Binary) settings() settings { return settings{b.Module, b.Ldflags, b.Debug} }

// executable returns the path of the executable that compile builds below dir.
func (b Binary) executable(dir string) string {
	return filepath.Join(dir, b.settings().folder(), path.Base(b.Package))
}

// invocation is one run of go build.
type invocation struct {
	settings
	dir  string // where the executables go
	pkgs []string
}

// compile builds each package of bins once for each of its settings (see Binary.executable).
func compile(ctx context.Context, dir string, bins []Binary) error {
	invocations, err := plan(dir, bins)
	if err != nil {
		return err
	}
	for _, inv := range invocations {
		if err := inv.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// plan groups bins by their settings: a single go build compiles common packages once and links in
// parallel. Each group has its own folder, so that a package with two sets of flags yields two
// files.
func plan(dir string, bins []Binary) ([]invocation, error) {
	var plan []invocation
	for _, bin := range bins {
		i := slices.IndexFunc(plan, func(inv invocation) bool { return inv.settings == bin.settings() })
		if i < 0 {
			plan = append(plan, invocation{settings: bin.settings(), dir: filepath.Join(dir, bin.settings().folder())})
			i = len(plan) - 1
		}
		if slices.Contains(plan[i].pkgs, bin.Package) {
			continue
		}
		same := func(pkg string) bool { return path.Base(pkg) == path.Base(bin.Package) }
		if j := slices.IndexFunc(plan[i].pkgs, same); j >= 0 {
			return nil, fmt.Errorf("image %s: packages %s and %s would be built to the same file: give one of them different linker flags",
				bin.Name, plan[i].pkgs[j], bin.Package)
		}
		plan[i].pkgs = append(plan[i].pkgs, bin.Package)
	}
	return plan, nil
}

// folder returns the folder name of the binaries that are built together.
func (s settings) folder() string {
	s.module = path.Base(s.module)
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", s))
	return hex.EncodeToString(sum[:6])
}

func (inv invocation) run(ctx context.Context) error {
	if err := os.MkdirAll(inv.dir, 0o755); err != nil {
		return fmt.Errorf("create build directory: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", inv.args()...)
	cmd.SetEnv(append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")...)
	if _, err := command.Run(ctx, cmd); err != nil {
		return fmt.Errorf("build %s: %w", strings.Join(inv.pkgs, ", "), err)
	}
	return nil
}

// args returns the arguments of go. The binaries contain no version control information, since
// otherwise every commit, even of documentation, would change all images.
func (inv invocation) args() []string {
	args := []string{"build"}
	if inv.module != "" {
		args = append(args, "-C", inv.module) // must be the first flag
	}
	if inv.debug {
		args = append(args, "-gcflags", debugFlags)
	}
	args = append(args, "-trimpath", "-buildvcs=false", "-ldflags", inv.linkerFlags(), "-o", inv.dir+string(filepath.Separator))
	return append(args, inv.pkgs...)
}

// debugFlags disables optimization only in this module. Dependencies come from the build cache.
const debugFlags = "github.com/gardener-extensions/registry-cache/...=-N -l"

// linkerFlags returns the linker's flags, which strip the symbols unless a debugger needs them.
func (s settings) linkerFlags() string {
	if s.debug {
		return s.ldflags
	}
	return strings.TrimSpace("-s -w " + s.ldflags)
}
