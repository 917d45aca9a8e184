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

// suite is the Debian release of the node. Its systemd still starts on cgroup v1; that of the next release does not.
const suite = "bookworm"

// rootfsScript removes what kind's base image removes from a Debian root file system.
//
//go:embed rootfs.sh
var rootfsScript string

// debianTree is a file tree of Debian packages, kept as a tar archive.
type debianTree struct {
	name     string
	packages []string
	// extractOnly unpacks the packages without running their scripts: no shell, no alternatives, no package database.
	extractOnly bool
	// script is a hook that runs on the finished tree, if not empty.
	script string
}

// nodeTree is the root file system of a node: the packages of kind's base image, systemd's D-Bus for those who talk to
// systemd, and openssl, which ca-certificates' trust store update calls.
func nodeTree() debianTree {
	return debianTree{
		name: "rootfs",
		packages: []string{
			"systemd", "systemd-sysv", "dbus",
			"conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod",
			"libseccomp2", "pigz", "e2fsprogs",
			"bash", "ca-certificates", "openssl", "curl", "jq", "procps", "hostname",
		},
		script: rootfsScript,
	}
}

// proxyTree is what kube-proxy calls, in either of its modes.
func proxyTree() debianTree {
	return debianTree{name: "kube-proxy-tools", packages: []string{"nftables", "iptables", "conntrack"}, extractOnly: true}
}

// shellTree is a static shell for local-path-provisioner's helper pods.
func shellTree() debianTree {
	return debianTree{name: "busybox", packages: []string{"busybox-static"}, extractOnly: true}
}

func debianTrees() []debianTree { return []debianTree{nodeTree(), proxyTree(), shellTree()} }

// entry is the name of the tree's archive in the cache.
func (t debianTree) entry(toolchain string) string {
	in := inputs{
		inputToolchain: toolchain, "suite": suite, "packages": strings.Join(t.packages, " "),
		"script": t.script, "extractOnly": fmt.Sprint(t.extractOnly),
	}
	return "debian-" + t.name + "-" + in.hash() + ".tar"
}

// arguments are mmdebstrap's; script is the path of the hook, if the tree has one.
func (t debianTree) arguments(script, target string) []string {
	args := []string{
		"--quiet",
		"--include=" + strings.Join(t.packages, ","),
		"--aptopt=Acquire::Retries \"3\"",
		"--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
		"--dpkgopt=path-exclude=/usr/lib/*/gconv/*",
	}
	variant := "minbase"
	if t.extractOnly {
		variant = "extract"
	}
	args = append(args, "--variant="+variant)
	if t.script != "" {
		args = append(args, "--customize-hook="+script)
	}
	return append(args, suite, target)
}

// build makes the tree's archive at target; work is a folder for what mmdebstrap does in between. mmdebstrap mounts in
// a mount namespace of its own, so that a killed one leaves files only.
func (t debianTree) build(ctx context.Context, work, target string) error {
	script := filepath.Join(work, t.name+".sh")
	if err := os.WriteFile(script, []byte(t.script), 0o755); err != nil {
		return err
	}
	return retry(ctx, fetchBackoff, "making the Debian file tree "+t.name, func(ctx context.Context) error {
		_, err := command.Run(ctx, interruptible(ctx, "mmdebstrap", t.arguments(script, target)...).
			SetEnv(append(os.Environ(), "TMPDIR="+work, "SOURCE_DATE_EPOCH=0")...))
		return err
	})
}
