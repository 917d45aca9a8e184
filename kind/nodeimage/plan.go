package nodeimage

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// repository is the name of every image that this package builds.
const repository = "registry-cache-testbed/node"

// plan lists the parts that a set of inputs requires, with their names in the cache.
type plan struct {
	ref          string
	compilations []plannedCompilation
	pause        string
	toolchain    string
	// kubernetes is the folder below modules/ that pins Kubernetes, and version the pinned version.
	kubernetes, version string
}

type plannedCompilation struct {
	compilation
	flags string
	entry string
}

func newPlan(in inputs, from folders) (plan, error) {
	p := plan{toolchain: in[inputToolchain], kubernetes: from.kubernetes}
	used := []string{inputToolchain, inputKind, inputRecipe}
	for _, c := range from.compilations() {
		goMod := inputModules + c.module + "/go.mod"
		pinned, err := pinnedVersions(goMod, []byte(in[goMod]))
		if err != nil {
			return plan{}, err
		}
		flags, err := c.linkerFlags(pinned)
		if err != nil {
			return plan{}, err
		}
		if c.module == p.kubernetes {
			p.version = pinned[kubernetesModule]
		}
		used = append(used, inputModules+c.module+"/")
		entry := "programs-" + c.name + "-" + c.key(in, flags)
		p.compilations = append(p.compilations, plannedCompilation{compilation: c, flags: flags, entry: entry})
	}
	p.ref = repository + ":" + in.under(used...).hash()
	p.pause = "programs-pause-" + in.under(inputToolchain, inputModules+p.kubernetes+"/go.mod").hash()
	return p, nil
}

// compilationsWith returns the compilations that build the named programs.
func compilationsWith(all []plannedCompilation, names []string) ([]plannedCompilation, error) {
	builds := func(c plannedCompilation, name string) bool {
		return slices.ContainsFunc(c.programs, func(p program) bool { return p.title() == name })
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c plannedCompilation) bool { return builds(c, name) }) {
			return nil, fmt.Errorf("the node image has no program %s", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(c plannedCompilation) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return builds(c, name) })
	}), nil
}

func (p plan) entries() []string {
	entries := []string{p.pause}
	for _, c := range p.compilations {
		entries = append(entries, c.entry)
	}
	for _, t := range debianTrees {
		entries = append(entries, t.entry(p.toolchain))
	}
	return entries
}

// artifacts contains the paths, on this machine, of the built programs and Debian trees by name.
type artifacts struct {
	programs map[string]string
	trees    map[string]string
}

// artifacts returns the paths of all parts, which must be built. use(entry) returns a part's path.
func (p plan) artifacts(use func(entry string) (string, error)) (artifacts, error) {
	var failed []error
	path := func(entry string) string {
		path, err := use(entry)
		if err != nil {
			failed = append(failed, fmt.Errorf("part %s of the node image: %w", entry, err))
		}
		return path
	}
	built := artifacts{programs: map[string]string{"pause": filepath.Join(path(p.pause), "pause")}, trees: map[string]string{}}
	for _, c := range p.compilations {
		folder := path(c.entry)
		for _, program := range c.programs {
			built.programs[program.title()] = filepath.Join(folder, program.title())
		}
	}
	for _, t := range debianTrees {
		built.trees[t.name] = path(t.entry(p.toolchain))
	}
	return built, errors.Join(failed...)
}
