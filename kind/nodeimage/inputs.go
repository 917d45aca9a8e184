package nodeimage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// recipe is the source code of this package and of the packages below it: one of the inputs.
//
//go:embed *.go */*.go *.sh
var recipe embed.FS

// inputs contains everything that the content of the image depends on, by name.
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

// Names of the inputs that are not files, and prefixes of the names of files.
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
