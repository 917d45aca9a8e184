package nodeimage

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/exec"
)

// containerdRoot is containerd's root folder on a node.
const containerdRoot = "/var/lib/containerd"

// imageNameAnnotation names an image in an OCI layout for containerd's import.
const imageNameAnnotation = "io.containerd.image.name"

// imageStore imports the images of all components into a containerd root folder below work and
// returns that folder as entries of the node's file system. refs has their references.
func imageStore(ctx context.Context, built artifacts, refs map[string]string, work string) ([]entry, error) {
	images, err := componentImages(ctx, built, work)
	if err != nil {
		return nil, err
	}
	layoutDir := filepath.Join(work, "layout")
	if err := writeLayout(layoutDir, images, refs); err != nil {
		return nil, fmt.Errorf("writing the images of the node: %w", err)
	}
	root := filepath.Join(work, "containerd")
	if err := os.Mkdir(root, 0o711); err != nil {
		return nil, err
	}
	if err := importLayout(ctx, built.programs["imagestore"], layoutDir, root); err != nil {
		return nil, fmt.Errorf("filling containerd's image store: %w", err)
	}
	return treeOf(root, containerdRoot)
}

func componentImages(ctx context.Context, built artifacts, work string) (map[string]v1.Image, error) {
	all := components()
	made := make([]v1.Image, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i, c := range all {
		group.Go(func() (err error) {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			made[i], err = c.image(built, work)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	images := map[string]v1.Image{}
	for i, c := range all {
		images[c.name] = made[i]
	}
	return images, nil
}

// writeLayout writes an OCI image layout with the images under their references.
func writeLayout(dir string, images map[string]v1.Image, refs map[string]string) error {
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, c := range components() {
		annotations := layout.WithAnnotations(map[string]string{imageNameAnnotation: refs[c.name]})
		if err := target.AppendImage(images[c.name], annotations); err != nil {
			return err
		}
	}
	return nil
}

// importLayout streams the layout into imagestore, which creates a containerd root folder.
func importLayout(ctx context.Context, imagestore, dir, root string) error {
	entries, err := treeOf(dir, "/")
	if err != nil {
		return err
	}
	return feed(ctx, exec.CommandContext(ctx, imagestore, root), func(w io.Writer) error { return writeTree(w, entries) })
}
