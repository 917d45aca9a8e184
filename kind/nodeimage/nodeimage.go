// Package nodeimage builds the image of a kind node from Go modules and Debian packages only, so
// that clusters start without access to a container registry.
//
// The recipe uses only these inputs: the go.mod and go.sum files and the small main packages below
// modules/, the version of kind's module, the toolchain, the names of the Debian packages, and the
// source of this package and of the packages below it. The hash of the inputs is the tag of the
// image. An image whose tag exists is not built again. The image contains:
//
//   - programs: Kubernetes, etcd, CoreDNS, crictl, containerd, runc, the CNI plugins and
//     local-path-provisioner, each pinned by a go.mod below modules/, so that the main module does
//     not get their dependencies;
//   - a Debian root file system (mmdebstrap);
//   - kind's base files, read from kind's Go module, and the manifest of the default StorageClass;
//   - containerd's image store with the images that kubeadm needs, built from scratch around the
//     same programs.
//
// Only the versions of Debian packages are not pinned: the hash covers the release and the names of
// the packages. A node image keeps the package versions of its build day until another input
// changes or the cached tree is removed.
//
// A build uses the Docker Engine only to look for the image and to load it. It runs no container.
//
// The package creates no clusters and does not install the engine.
package nodeimage

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// kubernetesFolders and containerdFolders are the folders below modules/, by minor version.
var (
	kubernetesFolders = map[string]string{"": "kubernetes", "1.34": "kubernetes-1.34", "1.36": "kubernetes", "1.37": "kubernetes-1.37"}
	containerdFolders = map[string]string{
		"": "containerd", "1.7": "containerd-1.7", "2.0": "containerd-2.0", "2.3": "containerd", "2.4": "containerd-2.4",
	}
)

// Options selects an image. The zero value selects the image that this repository defines, and
// shows no progress.
type Options struct {
	Kubernetes string             // the minor version of the kubelet, kubeadm and the control plane, such as "1.36"; empty means the default
	Containerd string             // the minor version of containerd, its shim and ctr; empty means the default
	Repository string             // a folder inside this Git repository; empty means the current folder
	Progress   *progress.Recorder // shows the steps of a build; may be nil
}

// Ensure returns the reference of the node image, whose tag is the hash of all inputs. If the
// Docker Engine has that image, Ensure takes about a second. If not, Ensure builds the missing
// parts and loads the image into the engine.
//
// A build takes minutes and about 3 GiB of disk. It needs the Go module proxy, a Debian mirror and
// the packages of hostTools. As root with apt-get, it installs missing packages; otherwise the
// error lists them. If the build fails or ctx ends, the next call continues with the finished
// parts. Concurrent calls wait for each other, even in different processes.
func Ensure(ctx context.Context, o Options) (string, error) {
	src, plan, err := o.plan(ctx)
	if err != nil {
		return "", err
	}
	if found, err := loaded(ctx, plan.ref); err != nil || found {
		return plan.ref, err
	}
	return plan.ref, o.withBuilder(ctx, src, plan, func(b builder) error {
		if found, err := loaded(ctx, plan.ref); err != nil || found { // another build may have just loaded it
			return err
		}
		if err := b.run(ctx); err != nil {
			return err
		}
		return b.cache.prune(time.Now().Add(-keepUnused))
	})
}

// Programs returns the paths of the named programs on this machine, by name. It knows the programs
// of the node image, such as kube-apiserver or etcd. It compiles programs that are not in the build
// cache, which takes minutes and needs the Go module proxy. It does not use the Docker Engine. An
// unknown name is an error.
//
// Callers must not change the files: they belong to the build cache. Later builds remove files that
// have not been used for two weeks.
func Programs(ctx context.Context, o Options, names ...string) (map[string]string, error) {
	src, plan, err := o.plan(ctx)
	if err != nil {
		return nil, err
	}
	if plan.compilations, err = compilationsWith(plan.compilations, names); err != nil {
		return nil, err
	}
	dir, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	found := &cache{dir: dir} // reading needs no lock: an existing entry is complete
	if slices.ContainsFunc(plan.compilations, func(c plannedCompilation) bool { return !found.has(c.entry) }) {
		if err := o.withBuilder(ctx, src, plan, func(b builder) error { return b.compile(ctx) }); err != nil {
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

// plan returns the sources of the image and the parts to build.
func (o Options) plan(ctx context.Context) (source, plan, error) {
	from := folders{kubernetesFolders[o.Kubernetes], containerdFolders[o.Containerd]}
	if from.kubernetes == "" || from.containerd == "" {
		return source{}, plan{}, fmt.Errorf("no node image has Kubernetes %q and containerd %q", o.Kubernetes, o.Containerd)
	}
	src, err := locate(ctx, o.Repository)
	if err != nil {
		return source{}, plan{}, err
	}
	in, err := newInputs(os.DirFS(src.modules), toolchain(), src.kindVersion)
	if err != nil {
		return source{}, plan{}, err
	}
	p, err := newPlan(in, from)
	if err != nil {
		return source{}, plan{}, fmt.Errorf("planning the node image: %w", err)
	}
	return src, p, nil
}

// withBuilder calls build while it holds the lock of the build cache.
func (o Options) withBuilder(ctx context.Context, src source, plan plan, build func(builder) error) error {
	dir, err := cacheFolder()
	if err != nil {
		return err
	}
	cache, err := openCache(ctx, dir)
	if err != nil {
		return err
	}
	defer cache.close()
	return build(builder{source: src, plan: plan, cache: cache, progress: cmp.Or(o.Progress, progress.New(io.Discard))})
}

// cacheFolder returns the folder for built parts. A build removes parts that have not been used for
// two weeks.
func cacheFolder() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the node image's build cache (set XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(base, "registry-cache-testbed", "nodeimage"), nil
}
