package nodeimage

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// Programs returns the paths of programs of the node image by their names in the image, such as
// kube-apiserver or etcd, for use on this machine. It compiles programs that the build cache does
// not have, which takes minutes and needs the Go module proxy. It does not use the Docker Engine
// and ignores Options.Override. An unknown name is an error.
//
// Callers must not change the files: they belong to the build cache. A build that no longer uses
// them removes them after two weeks.
func Programs(ctx context.Context, o Options, names ...string) (map[string]string, error) {
	src, plan, err := o.plan(ctx)
	if err != nil {
		return nil, err
	}
	if plan.compilations, err = compilationsWith(plan.compilations, names); err != nil {
		return nil, err
	}
	dir, err := o.cacheDir()
	if err != nil {
		return nil, err
	}
	found := &cache{dir: dir} // reading needs no lock: an existing entry is complete
	if slices.ContainsFunc(plan.compilations, func(c plannedCompilation) bool { return !found.has(c.entry) }) {
		if err := o.compile(ctx, src, plan); err != nil {
			return nil, err
		}
	}
	paths := map[string]string{}
	for _, c := range plan.compilations {
		folder, err := found.use(c.entry)
		if err != nil {
			return nil, fmt.Errorf("programs of %s: %w", c.name, err)
		}
		for _, p := range c.programs {
			if slices.Contains(names, p.title()) {
				paths[p.title()] = filepath.Join(folder, p.title())
			}
		}
	}
	return paths, nil
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

// compile builds the missing compilations of the plan.
func (o Options) compile(ctx context.Context, src source, plan plan) error {
	return o.withBuilder(ctx, src, plan, func(b builder) error {
		for _, c := range plan.compilations {
			err := b.part(ctx, "compile "+c.name, c.entry, func(ctx context.Context, target string) error {
				if err := c.fetch(ctx, src.modules); err != nil {
					return err
				}
				return c.run(ctx, src.modules, c.flags, target)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
