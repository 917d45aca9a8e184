package nodeimage

import (
	"context"
	"path"
	"path/filepath"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// builder builds the parts of a plan that are not in the build cache.
type builder struct {
	source   source
	plan     plan
	cache    *cache
	progress *progress.Recorder
}

func (b builder) run(ctx context.Context) error {
	if err := b.parts(ctx); err != nil {
		return err
	}
	built, err := b.plan.artifacts(b.cache.use)
	if err != nil {
		return err
	}
	base, sandbox, err := kindFiles(b.source.kindDir, b.plan.version)
	if err != nil {
		return err
	}
	store := filepath.Join(b.cache.temp(), "store.tar")
	err = b.progress.Step(ctx, "images inside the node", func(ctx context.Context) error {
		return b.store(ctx, built, sandbox, store)
	})
	if err != nil {
		return err
	}
	return b.progress.Step(ctx, "load into the engine", func(ctx context.Context) error {
		progress.Note(ctx, "%s", b.plan.ref)
		return b.load(ctx, built, base, store)
	})
}

// store writes a layer with containerd's image store to the archive file.
func (b builder) store(ctx context.Context, built artifacts, sandbox, archive string) error {
	required, err := command.Output(ctx, built.programs["kubeadm"], "config", "images", "list", "--kubernetes-version", b.plan.version)
	if err != nil {
		return err
	}
	refs, err := references(required, sandbox)
	if err != nil {
		return err
	}
	entries, err := imageStore(ctx, built, refs, b.cache.temp())
	if err != nil {
		return err
	}
	progress.Note(ctx, "%d images", len(refs))
	return filetree.WriteFile(archive, entries)
}

// load assembles the node image and loads it into the Docker Engine. base contains kind's files,
// and store is the path of the archive with containerd's image store.
func (b builder) load(ctx context.Context, built artifacts, base []filetree.Entry, store string) error {
	spec, err := command.Output(ctx, built.programs["ctr"], "oci", "spec")
	if err != nil {
		return err
	}
	specFile, err := containerSpec(spec)
	if err != nil {
		return err
	}
	localPath, err := b.source.moduleDir(ctx, "localpath", localPathModule)
	if err != nil {
		return err
	}
	storageFile, err := storage(localPath)
	if err != nil {
		return err
	}
	archive := filepath.Join(b.cache.temp(), "node.tar")
	files := slices.Concat(base, b.plan.nodePrograms(built), []filetree.Entry{specFile, storageFile})
	if err := filetree.WriteFile(archive, files); err != nil {
		return err
	}
	image, err := nodeImage(built.trees[nodeTree.name], archive, store)
	if err != nil {
		return err
	}
	return load(ctx, b.plan.ref, image)
}

func (p plan) nodePrograms(built artifacts) []filetree.Entry {
	var entries []filetree.Entry
	for _, c := range p.compilations {
		for _, program := range c.programs {
			if program.dir != "" {
				entries = append(entries, filetree.Executable(path.Join(program.dir, program.title()), built.programs[program.title()]))
			}
		}
	}
	return entries
}

// parts builds the missing parts. It builds the Debian trees in parallel with the programs, because
// a Debian tree mostly waits for downloads.
func (b builder) parts(ctx context.Context) error {
	if !slices.ContainsFunc(b.plan.entries(), func(entry string) bool { return !b.cache.has(entry) }) {
		return nil
	}
	if missing := missingPackages(hostTools); len(missing) > 0 {
		err := b.progress.Step(ctx, "packages to build with", func(ctx context.Context) error {
			progress.Note(ctx, "%d", len(missing))
			return installPackages(ctx, missing)
		})
		if err != nil {
			return err
		}
	}
	return progress.AtOnce(ctx, b.trees, func(ctx context.Context) error {
		return progress.InOrder(ctx, b.compile, b.compilePause)
	})
}

func (b builder) trees(ctx context.Context) error {
	for _, t := range debianTrees {
		err := b.part(ctx, "Debian packages: "+t.name, t.entry(b.plan.toolchain), func(ctx context.Context, target string) error {
			return t.build(ctx, b.cache.temp(), target)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compile builds the missing programs. Modules are downloaded while other programs compile.
// Compilations run one after another, since each uses all CPUs.
func (b builder) compile(ctx context.Context) error {
	missing := slices.DeleteFunc(slices.Clone(b.plan.compilations), func(c plannedCompilation) bool { return b.cache.has(c.entry) })
	fetch := func(ctx context.Context) error {
		for _, c := range missing {
			if err := c.fetch(ctx, b.source.modules); err != nil {
				return err
			}
		}
		return nil
	}
	return progress.AtOnce(ctx, fetch, func(ctx context.Context) error {
		for _, c := range missing {
			err := b.part(ctx, "compile "+c.name, c.entry, func(ctx context.Context, target string) error {
				if err := c.fetch(ctx, b.source.modules); err != nil { // does nothing if the other fetch is ahead
					return err
				}
				return c.run(ctx, b.source.modules, c.flags, target)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (b builder) compilePause(ctx context.Context) error {
	return b.part(ctx, "compile pause", b.plan.pause, func(ctx context.Context, target string) error {
		kubernetes, err := b.source.moduleDir(ctx, b.plan.kubernetes, kubernetesModule)
		if err != nil {
			return err
		}
		return compilePause(ctx, b.plan.version, kubernetes, target)
	})
}

// part builds one entry of the cache in a separate step, unless the cache contains it.
func (b builder) part(ctx context.Context, name, entry string, build func(ctx context.Context, target string) error) error {
	if b.cache.has(entry) {
		return nil
	}
	return b.progress.Step(ctx, name, func(ctx context.Context) error {
		return b.cache.produce(entry, func(target string) error { return build(ctx, target) })
	})
}
