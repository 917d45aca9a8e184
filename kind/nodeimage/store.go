package nodeimage

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage/kindbase"
)

// containerdRoot is containerd's root folder on a node.
const containerdRoot = "/var/lib/containerd"

// references maps components to the references in kubeadmImages, the output of `kubeadm config
// images list`, to sandboxImage, and to the images for persistent volumes.
func references(kubeadmImages, sandboxImage string) (map[string]string, error) {
	listed, refs := strings.Fields(kubeadmImages), map[string]string{}
	for _, ref := range slices.Concat(listed, []string{sandboxImage, kindbase.LocalPathProvisionerImage, kindbase.HelperImage}) {
		name, _, _ := strings.Cut(path.Base(ref), ":")
		refs[name] = ref
	}
	wanted := components()
	for _, c := range wanted {
		if refs[c.name] == "" {
			return nil, fmt.Errorf("kubeadm does not list an image %s: it lists %s", c.name, strings.Join(listed, ", "))
		}
	}
	if len(refs) != len(wanted) {
		return nil, fmt.Errorf("kubeadm lists an image that is not built: it lists %s", strings.Join(listed, ", "))
	}
	return refs, nil
}

// imageStore imports the images of all components into a containerd root folder below work and
// returns that folder as entries of the node's file system. refs has their references.
func imageStore(ctx context.Context, built artifacts, refs map[string]string, work string) ([]filetree.Entry, error) {
	layoutDir := filepath.Join(work, "layout")
	if err := writeLayout(ctx, layoutDir, built, refs, work); err != nil {
		return nil, fmt.Errorf("writing the images of the node: %w", err)
	}
	entries, err := filetree.Of(layoutDir, "/")
	if err != nil {
		return nil, err
	}
	root := filepath.Join(work, "containerd")
	if err := os.Mkdir(root, 0o711); err != nil {
		return nil, err
	}
	imagestore := exec.CommandContext(ctx, built.programs["imagestore"], root)
	if err := feed(ctx, imagestore, func(w io.Writer) error { return filetree.Write(w, entries) }); err != nil {
		return nil, fmt.Errorf("filling containerd's image store: %w", err)
	}
	return filetree.Of(root, containerdRoot)
}

// writeLayout writes an OCI image layout with the images of all components under their references.
func writeLayout(ctx context.Context, dir string, built artifacts, refs map[string]string, work string) error {
	all := components()
	images := make([]v1.Image, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i, c := range all {
		group.Go(func() (err error) {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			images[i], err = c.image(built, work)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for i, c := range all {
		// containerd's import takes the name of an image from this annotation.
		annotations := layout.WithAnnotations(map[string]string{"io.containerd.image.name": refs[c.name]})
		if err := target.AppendImage(images[i], annotations); err != nil {
			return err
		}
	}
	return nil
}
