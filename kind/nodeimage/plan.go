package nodeimage

import (
	"fmt"
	"path/filepath"
)

// plan is what one set of inputs requires: all parts by their names in the cache.
type plan struct {
	ref          string
	compilations []plannedCompilation
	pause        string
	trees        []plannedTree
}

type plannedCompilation struct {
	compilation
	flags string
	entry string
}

type plannedTree struct {
	debianTree
	entry string
}

func newPlan(in inputs) (plan, error) {
	p := plan{ref: repository + ":" + in.hash()}
	for _, c := range compilations() {
		goMod := inputModules + c.module + "/go.mod"
		pinned, err := parseVersions(goMod, []byte(in[goMod]))
		if err != nil {
			return plan{}, err
		}
		flags, err := c.linkerFlags(pinned)
		if err != nil {
			return plan{}, err
		}
		entry := "programs-" + c.name + "-" + c.key(in, flags)
		p.compilations = append(p.compilations, plannedCompilation{compilation: c, flags: flags, entry: entry})
	}
	p.pause = "programs-pause-" + in.under(inputToolchain, inputModules+"kubernetes/go.mod").hash()
	for _, t := range debianTrees() {
		p.trees = append(p.trees, plannedTree{debianTree: t, entry: t.entry(in[inputToolchain])})
	}
	return p, nil
}

// entries returns the names of all parts.
func (p plan) entries() []string {
	entries := []string{p.pause}
	for _, c := range p.compilations {
		entries = append(entries, c.entry)
	}
	for _, t := range p.trees {
		entries = append(entries, t.entry)
	}
	return entries
}

// artifacts returns the built parts. use returns the path of a part.
func (p plan) artifacts(use func(entry string) (string, error)) (artifacts, error) {
	built := artifacts{programs: map[string]string{}, trees: map[string]string{}}
	paths := map[string]string{}
	for _, entry := range p.entries() {
		path, err := use(entry)
		if err != nil {
			return artifacts{}, fmt.Errorf("part %s of the node image: %w", entry, err)
		}
		paths[entry] = path
	}
	built.programs["pause"] = filepath.Join(paths[p.pause], "pause")
	for _, c := range p.compilations {
		for _, program := range c.programs {
			built.programs[program.title()] = filepath.Join(paths[c.entry], program.title())
		}
	}
	for _, t := range p.trees {
		built.trees[t.name] = paths[t.entry]
	}
	return built, nil
}
