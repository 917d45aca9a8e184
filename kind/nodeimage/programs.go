package nodeimage

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Folders for programs in the node's file system. kind's base files and kubeadm expect the programs
// there.
const (
	usrBin       = "/usr/bin"
	usrLocalBin  = "/usr/local/bin"
	usrLocalSbin = "/usr/local/sbin"
	cniBin       = "/opt/cni/bin"
)

// compilation is one `go build`. Its programs are in one module and need the same flags.
type compilation struct {
	name     string // distinguishes compilations of one module
	module   string // the folder below modules/ whose go.mod pins the programs
	programs []program
	stamps   []stamp // the variables that hold versions
	cgo      bool    // links C code statically, so that the node does not need the host's C library
	tags     []string
}

type program struct {
	pkg  string // the import path, or ./folder for a main package below modules/
	name string // the name in the image, by default the last element of pkg
	dir  string // the program's folder on a node; empty if the program is not on nodes
}

// stamp describes a string variable that the linker sets to a module's version.
type stamp struct {
	variable string
	module   string
	format   func(version string) string
}

// folders are the folders below modules/ that pin Kubernetes and containerd. The folders kubernetes
// and containerd also pin the other programs, which are the same in all images.
type folders struct{ kubernetes, containerd string }

// compilations are in build order: modules of later ones are downloaded while earlier ones compile.
func (f folders) compilations() []compilation {
	return []compilation{
		containerdPrograms(f.containerd), networkPrograms, runcProgram, localPathProgram,
		etcdPrograms, controlPlanePrograms.in(f.kubernetes), kubernetesPrograms.in(f.kubernetes), nodeTools,
	}
}

// in returns the compilation of the version that another folder pins.
func (c compilation) in(folder string) compilation {
	c.module = folder
	return c
}

// containerdPrograms have one version: containerd 2.0 cannot parse the bootstrap response of the
// shim of 2.3 (containerd/containerd#13763).
func containerdPrograms(folder string) compilation {
	containerd := "github.com/containerd/containerd/v2"
	if folder == "containerd-1.7" {
		containerd = "github.com/containerd/containerd"
	}
	return compilation{
		name:   "containerd",
		module: folder,
		programs: []program{
			{pkg: containerd + "/cmd/containerd", dir: usrLocalBin},
			{pkg: containerd + "/cmd/containerd-shim-runc-v2", dir: usrLocalBin},
			{pkg: containerd + "/cmd/ctr", dir: usrLocalBin},
		},
		stamps: []stamp{{containerd + "/version.Version", containerd, whole}},
	}
}

// networkPrograms are CNI plugins, and imagestore, whose stores every version of containerd reads.
var networkPrograms = compilation{
	name:   "cni",
	module: "containerd",
	programs: []program{
		{pkg: "github.com/containernetworking/plugins/plugins/ipam/host-local", dir: cniBin},
		{pkg: "github.com/containernetworking/plugins/plugins/main/loopback", dir: cniBin},
		{pkg: "github.com/containernetworking/plugins/plugins/main/ptp", dir: cniBin},
		{pkg: "github.com/containernetworking/plugins/plugins/meta/portmap", dir: cniBin},
		{pkg: "./imagestore"},
	},
	stamps: []stamp{{"github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion", "github.com/containernetworking/plugins", whole}},
}

var runcProgram = compilation{
	name:     "runc",
	module:   "containerd",
	programs: []program{{pkg: "github.com/opencontainers/runc", dir: usrLocalSbin}},
	stamps:   []stamp{{"main.version", "github.com/opencontainers/runc", withoutV}},
	cgo:      true,
	tags:     []string{"seccomp", "netgo", "osusergo"},
}

var localPathProgram = compilation{
	name:     "local-path-provisioner",
	module:   "localpath",
	programs: []program{{pkg: localPathModule}},
	stamps:   []stamp{{"main.VERSION", localPathModule, whole}},
}

var etcdPrograms = compilation{
	name:   "etcd",
	module: "kubernetes",
	programs: []program{
		{pkg: "go.etcd.io/etcd/server/v3", name: "etcd"},
		{pkg: "go.etcd.io/etcd/etcdctl/v3", name: "etcdctl"},
	},
}

// controlPlanePrograms and etcdPrograms are all that an API server without nodes needs. They are
// compilations of their own, so that Programs does not compile the kubelet and kubeadm for them.
var controlPlanePrograms = compilation{
	name: "control-plane",
	programs: []program{
		{pkg: kubernetesModule + "/cmd/kube-apiserver"},
		{pkg: kubernetesModule + "/cmd/kube-controller-manager"},
		{pkg: kubernetesModule + "/cmd/kube-scheduler"},
	},
	stamps: kubernetesStamps,
}

var kubernetesPrograms = compilation{
	name: "kubernetes",
	programs: []program{
		{pkg: kubernetesModule + "/cmd/kubelet", dir: usrBin},
		{pkg: kubernetesModule + "/cmd/kubeadm", dir: usrBin},
		{pkg: kubernetesModule + "/cmd/kubectl", dir: usrBin},
		{pkg: kubernetesModule + "/cmd/kube-proxy"},
	},
	stamps: kubernetesStamps,
}

var nodeTools = compilation{
	name:     "node-tools",
	module:   "kubernetes",
	programs: []program{{pkg: "sigs.k8s.io/cri-tools/cmd/crictl", dir: usrLocalBin}, {pkg: "./coredns"}},
	stamps:   []stamp{{"sigs.k8s.io/cri-tools/pkg/version.Version", "sigs.k8s.io/cri-tools", whole}},
}

// kubernetesStamps hold the version of Kubernetes. Without it, kubeadm and the kubelet report
// v0.0.0 and refuse to work with each other.
var kubernetesStamps = []stamp{
	{"k8s.io/component-base/version.gitVersion", kubernetesModule, whole},
	{"k8s.io/component-base/version.gitMajor", kubernetesModule, major},
	{"k8s.io/component-base/version.gitMinor", kubernetesModule, minor},
}

// file returns the name that go build uses: the last element of pkg that is not a major version.
func (p program) file() string {
	prefix, _, _ := module.SplitPathVersion(p.pkg)
	return path.Base(prefix)
}

func (p program) title() string { return cmp.Or(p.name, p.file()) }

// linkerFlags returns the value of -ldflags. The module of each stamp must be pinned.
func (c compilation) linkerFlags(versions map[string]string) (string, error) {
	flags := []string{"-s", "-w"}
	if c.cgo {
		flags = append(flags, "-extldflags", "-static")
	}
	for _, s := range c.stamps {
		version, ok := versions[s.module]
		if !ok {
			return "", fmt.Errorf("modules/%s/go.mod does not require %s", c.module, s.module)
		}
		flags = append(flags, "-X", s.variable+"="+s.format(version))
	}
	return strings.Join(flags, " "), nil
}

func whole(version string) string    { return version }
func withoutV(version string) string { return strings.TrimPrefix(version, "v") }
func major(version string) string    { return withoutV(semver.Major(version)) }
func minor(version string) string {
	return strings.TrimPrefix(semver.MajorMinor(version), semver.Major(version)+".")
}
