package nodeimage

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/kind/nodeimage/filetree"
)

// component is one image in the containerd of the node: a few programs, perhaps on a Debian tree.
type component struct {
	// name is the last part of the image's repository.
	name string
	// programs are the titles of the programs in /usr/local/bin. The first one is the entry point.
	programs []string
	// tree is the Debian tree below the programs, or nil.
	tree *debianTree
	// extra entries are added last.
	extra []filetree.Entry
}

// components returns the images of a node.
func components() []component {
	proxy, shell := proxyTree(), shellTree()
	return []component{
		{name: "kube-apiserver", programs: []string{"kube-apiserver"}},
		{name: "kube-controller-manager", programs: []string{"kube-controller-manager"}},
		{name: "kube-scheduler", programs: []string{"kube-scheduler"}},
		{name: "kube-proxy", programs: []string{"kube-proxy"}, tree: &proxy, extra: iptablesLinks()},
		{name: "etcd", programs: []string{"etcd", "etcdctl"}},
		{name: "coredns", programs: []string{"coredns"}},
		{name: "pause", programs: []string{"pause"}},
		{name: "local-path-provisioner", programs: []string{"local-path-provisioner"}},
		{name: "busybox", tree: &shell, extra: appletLinks()},
	}
}

// iptablesLinks returns the links of Debian's alternatives, which extractOnly leaves out.
func iptablesLinks() []filetree.Entry {
	var links []filetree.Entry
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			links = append(links, filetree.Symlink("/usr/sbin/"+family+suffix, "xtables-nft-multi"))
		}
	}
	return links
}

// appletLinks returns the commands of local-path-provisioner's scripts and of people.
func appletLinks() []filetree.Entry {
	var links []filetree.Entry
	for _, applet := range []string{"sh", "cat", "chmod", "chown", "cp", "df", "du", "ls", "mkdir", "mv", "rm", "sleep", "sync"} {
		links = append(links, filetree.Symlink("/bin/"+applet, "busybox"))
	}
	return links
}

// entries returns the files of the component's own layer.
func (c component) entries(built artifacts) ([]filetree.Entry, error) {
	entries := []filetree.Entry{filetree.Folder("/tmp", 0o777|fs.ModeSticky)}
	for _, name := range c.programs {
		source, ok := built.programs[name]
		if !ok {
			return nil, fmt.Errorf("image %s: program %s was not built", c.name, name)
		}
		entries = append(entries, filetree.Executable(path.Join(usrLocalBin, name), source))
	}
	return append(entries, c.extra...), nil
}

// image returns the component's image. It writes the layers to the folder work.
func (c component) image(built artifacts, work string) (v1.Image, error) {
	entries, err := c.entries(built)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(work, c.name+".tar")
	if err := filetree.WriteFile(own, entries); err != nil {
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
	return imageOf(config, types.OCIManifestSchema1, types.OCIConfigJSON, layers...)
}
