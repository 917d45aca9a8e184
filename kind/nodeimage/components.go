package nodeimage

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

// component is one image in the containerd of the node: a few programs, perhaps on a Debian tree.
type component struct {
	name     string           // the last part of the image's repository
	programs []string         // in /usr/local/bin; the first one is the entry point
	tree     *debianTree      // below the programs, or nil
	extra    []filetree.Entry // added last
}

// components are the images of a node.
var components = []component{
	{name: "kube-apiserver", programs: []string{"kube-apiserver"}},
	{name: "kube-controller-manager", programs: []string{"kube-controller-manager"}},
	{name: "kube-scheduler", programs: []string{"kube-scheduler"}},
	{name: "kube-proxy", programs: []string{"kube-proxy"}, tree: &proxyTree, extra: iptablesLinks()},
	{name: "etcd", programs: []string{"etcd", "etcdctl"}},
	{name: "coredns", programs: []string{"coredns"}},
	{name: "pause", programs: []string{"pause"}},
	{name: "local-path-provisioner", programs: []string{"local-path-provisioner"}},
	{name: "busybox", tree: &shellTree, extra: appletLinks()},
}

// iptablesLinks returns the links that Debian's update-alternatives would create. A tree with
// extractOnly lacks them.
func iptablesLinks() []filetree.Entry {
	var links []filetree.Entry
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			links = append(links, filetree.Symlink("/usr/sbin/"+family+suffix, "xtables-nft-multi"))
		}
	}
	return links
}

// appletLinks returns links to busybox for the commands that users and local-path-provisioner's
// scripts need.
func appletLinks() []filetree.Entry {
	var links []filetree.Entry
	for _, applet := range []string{"sh", "cat", "chmod", "chown", "cp", "df", "du", "ls", "mkdir", "mv", "rm", "sleep", "sync"} {
		links = append(links, filetree.Symlink("/bin/"+applet, "busybox"))
	}
	return links
}

// image returns the component's image. It writes the layers to the folder work.
func (c component) image(built artifacts, work string) (v1.Image, error) {
	entries := []filetree.Entry{filetree.Folder("/tmp", 0o777|fs.ModeSticky)}
	for _, name := range c.programs {
		source, ok := built.programs[name]
		if !ok {
			return nil, fmt.Errorf("image %s: program %s was not built", c.name, name)
		}
		entries = append(entries, filetree.Executable(path.Join(usrLocalBin, name), source))
	}
	own := filepath.Join(work, c.name+".tar")
	if err := filetree.WriteFile(own, append(entries, c.extra...)); err != nil {
		return nil, fmt.Errorf("image %s: %w", c.name, err)
	}
	archives := []string{own}
	if c.tree != nil {
		archives = []string{built.trees[c.tree.name], own}
	}
	var layers []v1.Layer
	for _, archive := range archives {
		layer, err := packedLayer(archive)
		if err != nil {
			return nil, fmt.Errorf("image %s: packing %s: %w", c.name, archive, err)
		}
		layers = append(layers, layer)
	}
	entrypoint := "/bin/sh"
	if len(c.programs) > 0 {
		entrypoint = path.Join(usrLocalBin, c.programs[0])
	}
	config := v1.Config{Env: []string{searchPath}, Entrypoint: []string{entrypoint}}
	return filetree.Image(config, types.OCIManifestSchema1, types.OCIConfigJSON, layers...)
}

// references returns the reference of each component, taken from kubeadmImages (the output of
// `kubeadm config images list`), sandboxImage, and the images for persistent volumes.
func references(kubeadmImages, sandboxImage string) (map[string]string, error) {
	listed, refs := strings.Fields(kubeadmImages), map[string]string{}
	for _, ref := range slices.Concat(listed, []string{sandboxImage, localPathImage, helperImage}) {
		name, _, _ := strings.Cut(path.Base(ref), ":")
		refs[name] = ref
	}
	for _, c := range components {
		if refs[c.name] == "" {
			return nil, fmt.Errorf("kubeadm does not list an image %s: it lists %s", c.name, strings.Join(listed, ", "))
		}
	}
	if len(refs) != len(components) {
		return nil, fmt.Errorf("kubeadm lists an image that is not built: it lists %s", strings.Join(listed, ", "))
	}
	return refs, nil
}

// imageStore imports the images of all components into a containerd root folder, inside the folder
// work, and returns that root folder as entries of the node's file system. refs are the references
// of the images, by name.
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
	return filetree.Of(root, "/var/lib/containerd")
}

// writeLayout writes an OCI image layout with the images of all components under their references.
func writeLayout(ctx context.Context, dir string, built artifacts, refs map[string]string, work string) error {
	images := make([]v1.Image, len(components))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i, c := range components {
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
	for i, c := range components {
		// containerd's import takes the name of an image from this annotation.
		annotations := layout.WithAnnotations(map[string]string{"io.containerd.image.name": refs[c.name]})
		if err := target.AppendImage(images[i], annotations); err != nil {
			return err
		}
	}
	return nil
}
