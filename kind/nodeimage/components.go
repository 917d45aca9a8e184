package nodeimage

import (
	"fmt"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// component is one image in the node's containerd: from scratch, a few programs, perhaps a Debian tree below them.
type component struct {
	// name is the last part of the repository that kubeadm asks for, or of our own reference.
	name string
	// programs are titles of programs, put to /usr/local/bin; the first is the entry point.
	programs []string
	// tree is the Debian tree below the programs, nil for none.
	tree *debianTree
	// extra entries come on top.
	extra []entry
}

// components lists the images of a node.
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

// iptablesLinks are what Debian's alternatives would set up if the package's scripts had run.
func iptablesLinks() []entry {
	var links []entry
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			links = append(links, symlink("/usr/sbin/"+family+suffix, "xtables-nft-multi"))
		}
	}
	return links
}

// appletLinks are the commands of local-path-provisioner's scripts and those that a person would try first.
func appletLinks() []entry {
	var links []entry
	for _, applet := range []string{"sh", "cat", "chmod", "chown", "cp", "df", "du", "ls", "mkdir", "mv", "rm", "sleep", "sync"} {
		links = append(links, symlink("/bin/"+applet, "busybox"))
	}
	return links
}

// references maps the name of each component to its reference: kubeadm decides the Kubernetes ones, containerd's
// configuration the sandbox image, we the rest. kubeadmImages is the output of `kubeadm config images list`.
func references(kubeadmImages, sandboxImage string) (map[string]string, error) {
	refs := map[string]string{}
	for _, ref := range append(strings.Fields(kubeadmImages), sandboxImage, LocalPathProvisionerImage, HelperImage) {
		refs[componentName(ref)] = ref
	}
	wanted := components()
	for _, c := range wanted {
		if refs[c.name] == "" {
			return nil, fmt.Errorf("kubeadm asks for no image %s: it asks for %s", c.name, strings.Join(strings.Fields(kubeadmImages), ", "))
		}
	}
	if len(refs) != len(wanted) {
		return nil, fmt.Errorf("kubeadm asks for an image that is not built: it asks for %s", strings.Join(strings.Fields(kubeadmImages), ", "))
	}
	return refs, nil
}

// componentName is the last part of a reference's repository.
func componentName(ref string) string {
	name, _, _ := strings.Cut(path.Base(ref), ":")
	return name
}

// sandboxImage returns the pause image that a containerd configuration, format version 2, names.
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
