package nodeimage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// recipe is the source of this package and of the packages below it, which is an input too.
//
//go:embed *.go */*.go *.sh
var recipe embed.FS

// inputs is everything that the content of the image depends on, by name.
type inputs map[string]string

// hash returns a hex digest of all names and values.
func (in inputs) hash() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(in)) {
		fmt.Fprintf(h, "%d %s %d %s\n", len(name), name, len(in[name]), in[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// under returns the inputs whose name starts with one of the prefixes.
func (in inputs) under(prefixes ...string) inputs {
	out := maps.Clone(in)
	maps.DeleteFunc(out, func(name, _ string) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	return out
}

// Names of the inputs that are not files.
const (
	inputToolchain = "toolchain"
	inputKind      = "kind"
	inputModules   = "modules/"
	inputRecipe    = "recipe/"
)

// newInputs reads the modules and the recipe. toolchain and kind are versions.
func newInputs(modules fs.FS, toolchain, kind string) (inputs, error) {
	in := inputs{inputToolchain: toolchain, inputKind: kind}
	isSource := func(name string) bool { return slices.Contains([]string{".go", ".mod", ".sum"}, path.Ext(name)) }
	if err := in.add(inputModules, modules, isSource); err != nil {
		return nil, fmt.Errorf("reading the build modules: %w", err)
	}
	if err := in.add(inputRecipe, recipe, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }); err != nil {
		return nil, fmt.Errorf("reading the recipe: %w", err)
	}
	return in, nil
}

func (in inputs) add(prefix string, files fs.FS, wanted func(name string) bool) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !wanted(name) {
			return err
		}
		data, err := fs.ReadFile(files, name)
		in[prefix+name] = string(data)
		return err
	})
}

// key identifies the result of a compilation by its module, its flags and the toolchain.
func (c compilation) key(in inputs, flags string) string {
	own := in.under(inputToolchain, inputModules+c.module+"/")
	own["flags"] = flags
	own["command"] = fmt.Sprint(c.name, c.programs, c.cgo, c.tags)
	return own.hash()
}

const (
	ownModule        = "github.com/gardener-extensions/registry-cache"
	kindModule       = "sigs.k8s.io/kind"
	kubernetesModule = "k8s.io/kubernetes"
	localPathModule  = "github.com/rancher/local-path-provisioner"
)

// source is the location of the inputs on this machine.
type source struct {
	modules string // the folder with the build modules
	// kindDir and kindVersion are those of kind's module in this repository's go.mod.
	kindDir, kindVersion string
}

// toolchain returns the compiler version and the architecture, which both determine the programs.
func toolchain() string { return runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH }

// locate runs the go command in the folder dir of this repository. Empty means the current folder.
func locate(ctx context.Context, dir string) (source, error) {
	out, err := command.Output(ctx, "go", "-C", cmp.Or(dir, "."), "list", "-m", "-f", "{{.Path}}\t{{.Version}}\t{{.Dir}}", ownModule, kindModule)
	if err != nil {
		return source{}, fmt.Errorf("finding the sources of the node image (run this inside the repository): %w", err)
	}
	return parseLocation(out)
}

// parseLocation parses one line per module: path, version and folder, separated by tabs.
func parseLocation(lines string) (source, error) {
	var s source
	for line := range strings.Lines(lines) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || fields[2] == "" {
			return source{}, fmt.Errorf("the module %s is not on this machine: run `go mod download`", fields[0])
		}
		switch fields[0] {
		case ownModule:
			s.modules = filepath.Join(fields[2], "kind/nodeimage/modules")
		case kindModule:
			s.kindVersion, s.kindDir = fields[1], fields[2]
		}
	}
	return s, nil
}

// moduleDir returns the folder of a module that a build module requires. It may download it.
func (s source) moduleDir(ctx context.Context, buildModule, module string) (string, error) {
	var download string
	err := retry(ctx, fetchBackoff, "fetching the Go module "+module, func(ctx context.Context) (err error) {
		download, err = command.Output(ctx, "go", "-C", filepath.Join(s.modules, buildModule), "mod", "download", "-json", module)
		return err
	})
	if err != nil {
		return "", err
	}
	return parseDownload(download)
}

// parseDownload returns the folder in the output of `go mod download -json`.
func parseDownload(output string) (string, error) {
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(output), &module); err != nil {
		return "", fmt.Errorf("reading the output of `go mod download`: %w", err)
	}
	return module.Dir, nil
}
