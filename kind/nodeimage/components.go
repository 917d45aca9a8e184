package nodeimage

import (
	"fmt"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"
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
	extra []entry
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
func iptablesLinks() []entry {
	var links []entry
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			links = append(links, symlink("/usr/sbin/"+family+suffix, "xtables-nft-multi"))
		}
	}
	return links
}

// appletLinks returns the commands of local-path-provisioner's scripts and of people.
func appletLinks() []entry {
	var links []entry
	for _, applet := range []string{"sh", "cat", "chmod", "chown", "cp", "df", "du", "ls", "mkdir", "mv", "rm", "sleep", "sync"} {
		links = append(links, symlink("/bin/"+applet, "busybox"))
	}
	return links
}

// references maps components to the references in kubeadmImages, the output of `kubeadm config
// images list`, to sandboxImage, and to the images in this package.
func references(kubeadmImages, sandboxImage string) (map[string]string, error) {
	refs := map[string]string{}
	for _, ref := range append(strings.Fields(kubeadmImages), sandboxImage, LocalPathProvisionerImage, HelperImage) {
		refs[componentName(ref)] = ref
	}
	wanted := components()
	for _, c := range wanted {
		if refs[c.name] == "" {
			return nil, fmt.Errorf("kubeadm does not list an image %s: it lists %s", c.name, strings.Join(strings.Fields(kubeadmImages), ", "))
		}
	}
	if len(refs) != len(wanted) {
		return nil, fmt.Errorf("kubeadm lists an image that is not built: it lists %s", strings.Join(strings.Fields(kubeadmImages), ", "))
	}
	return refs, nil
}

// componentName returns the last part of a reference's repository.
func componentName(ref string) string {
	name, _, _ := strings.Cut(path.Base(ref), ":")
	return name
}

// sandboxImage returns the pause image in a containerd configuration of format version 2.
func sandboxImage(config string) (string, error) {
	var parsed struct {
		Plugins map[string]struct {
			SandboxImage string `toml:"sandbox_image"`
		} `toml:"plugins"`
	}
	if err := toml.Unmarshal([]byte(config), &parsed); err != nil {
		return "", fmt.Errorf("parsing containerd's configuration: %w", err)
	}
	image := parsed.Plugins["io.containerd.grpc.v1.cri"].SandboxImage
	if image == "" {
		return "", fmt.Errorf("containerd's configuration names no sandbox image")
	}
	return image, nil
}
