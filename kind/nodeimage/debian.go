package nodeimage

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// suite is the node's Debian release. It is the last release whose systemd starts on cgroup v1.
const suite = "bookworm"

// rootfsScript removes from a Debian root file system the files that must not be in a container.
// The list is the one in kind's Dockerfile.
//
//go:embed rootfs.sh
var rootfsScript string

// debianTree is a file tree of Debian packages, kept as a tar archive.
type debianTree struct {
	name        string
	packages    []string
	extractOnly bool   // package scripts do not run: no shell, no alternatives, no package database
	script      string // a hook that runs on the finished tree, or empty
}

// nodeTree is the root file system of a node: the packages of kind's base image, D-Bus for the
// clients of systemd, and openssl for the script that updates the trust store of ca-certificates.
var nodeTree = debianTree{
	name: "rootfs",
	packages: []string{
		"systemd", "systemd-sysv", "dbus",
		"conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod",
		"libseccomp2", "pigz", "e2fsprogs",
		"bash", "ca-certificates", "openssl", "curl", "jq", "procps", "hostname",
	},
	script: rootfsScript,
}

// proxyTree contains the programs that kube-proxy calls in its iptables and nftables modes.
var proxyTree = debianTree{name: "kube-proxy-tools", packages: []string{"nftables", "iptables", "conntrack"}, extractOnly: true}

// shellTree contains a static shell for local-path-provisioner's helper pods.
var shellTree = debianTree{name: "busybox", packages: []string{"busybox-static"}, extractOnly: true}

var debianTrees = []debianTree{nodeTree, proxyTree, shellTree}

// entry returns the name of the tree's archive in the cache.
func (t debianTree) entry(toolchain string) string {
	in := inputs{
		inputToolchain: toolchain, "suite": suite, "packages": strings.Join(t.packages, " "),
		"script": t.script, "extractOnly": fmt.Sprint(t.extractOnly),
	}
	return "debian-" + t.name + "-" + in.hash() + ".tar"
}

// arguments returns the arguments of mmdebstrap. script is the path of the hook, if the tree has
// one.
func (t debianTree) arguments(script, target string) []string {
	variant := "minbase"
	if t.extractOnly {
		variant = "extract"
	}
	args := []string{
		"--quiet", "--variant=" + variant,
		"--include=" + strings.Join(t.packages, ","),
		"--aptopt=Acquire::Retries \"3\"",
		"--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
		"--dpkgopt=path-exclude=/usr/lib/*/gconv/*",
	}
	if t.script != "" {
		args = append(args, "--customize-hook="+script)
	}
	return append(args, suite, target)
}

// build writes the tree's archive to target. mmdebstrap keeps temporary files in the folder work,
// and runs in its own mount namespace. A killed mmdebstrap leaves files but no mounts.
func (t debianTree) build(ctx context.Context, work, target string) error {
	script := filepath.Join(work, t.name+".sh")
	if err := os.WriteFile(script, []byte(t.script), 0o755); err != nil {
		return err
	}
	return retry(ctx, fetchBackoff, "building the Debian file tree "+t.name, func(ctx context.Context) error {
		_, err := command.Run(ctx, interruptible(ctx, "mmdebstrap", t.arguments(script, target)...).
			SetEnv(append(os.Environ(), "TMPDIR="+work, "SOURCE_DATE_EPOCH=0")...))
		return err
	})
}
