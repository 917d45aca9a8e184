package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Options says which image is wanted and how it is built. The zero value builds our own, without showing progress.
type Options struct {
	// Override is a stock kindest/node reference to use instead of building (NODE_IMAGE).
	Override string
	// Repository is a folder inside this repository; empty means the current one.
	Repository string
	// CacheDir keeps built parts between builds; empty means registry-cache-testbed/nodeimage below $XDG_CACHE_HOME or
	// ~/.cache. Parts that no build has used for two weeks are removed.
	CacheDir string
	// Progress shows the steps of a build; nil shows nothing.
	Progress *progress.Recorder
}

// Ensure returns the reference of a node image. Override is returned as it is: kind pulls it if it is missing. Else the
// reference carries the hash of all inputs; when the Docker Engine has an image of that name nothing is built, which
// takes about a second. Otherwise the missing parts are built and the image is loaded into the engine.
//
// A build needs the Go module proxy, a Debian mirror, the packages of hostTools (installed when this process is root
// and apt-get is there, else the error names them), about 3 GiB of disk, and takes minutes. When it fails or ctx ends,
// the parts that were finished stay and the next call continues with them. Concurrent calls, also of other processes,
// wait for each other.
func Ensure(ctx context.Context, o Options) (string, error) {
	if o.Override != "" {
		return o.Override, nil
	}
	src, plan, err := o.plan(ctx)
	if err != nil {
		return "", err
	}
	if found, err := loaded(ctx, plan.ref); err != nil || found {
		return plan.ref, err
	}
	return plan.ref, o.build(ctx, src, plan)
}

// Loaded tells whether the Docker Engine has the image that Ensure would return.
func Loaded(ctx context.Context, o Options) (bool, error) {
	if o.Override != "" {
		return loaded(ctx, o.Override)
	}
	_, plan, err := o.plan(ctx)
	if err != nil {
		return false, err
	}
	return loaded(ctx, plan.ref)
}

// Begun tells whether Ensure has built parts before, perhaps of another image, in the same CacheDir.
func Begun(o Options) (bool, error) {
	dir, err := o.cacheDir()
	if err != nil {
		return false, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() != lockFile }), err
}

// plan says what the image is made of, and where that lies.
func (o Options) plan(ctx context.Context) (source, plan, error) {
	src, err := locate(ctx, o.Repository)
	if err != nil {
		return source{}, plan{}, err
	}
	in, err := newInputs(os.DirFS(src.modules), toolchain(), src.kindVersion)
	if err != nil {
		return source{}, plan{}, err
	}
	p, err := newPlan(in)
	if err != nil {
		return source{}, plan{}, fmt.Errorf("planning the node image: %w", err)
	}
	return src, p, nil
}

// build makes the image under the cache's lock.
func (o Options) build(ctx context.Context, src source, plan plan) (err error) {
	dir, err := o.cacheDir()
	if err != nil {
		return err
	}
	cache, err := openCache(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cache.close(ctx)) }()
	if found, err := loaded(ctx, plan.ref); err != nil || found { // by the build that was waited for
		return err
	}
	b := builder{source: src, plan: plan, cache: cache, progress: o.Progress}
	if b.progress == nil {
		b.progress = progress.New(io.Discard)
	}
	if err := b.run(ctx); err != nil {
		return err
	}
	return cache.prune(time.Now().Add(-keepUnused))
}

func (o Options) cacheDir() (string, error) {
	if o.CacheDir != "" {
		return o.CacheDir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for the node image's build cache (set XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(base, "registry-cache-testbed", "nodeimage"), nil
}
