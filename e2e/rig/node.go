//go:build e2e

package rig

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Names that are contracts (docs/architecture.md). They are repeated here, and not taken from the
// packages that define them, so that a scenario fails when one of them changes.
const (
	Alpha = "alpha.upstream.test"
	Beta  = "beta.upstream.test"
	// Gamma has no cache unless a scenario configures one.
	Gamma = "gamma.upstream.test"
	// Private exists only while a scenario needs it.
	Private = "private.upstream.test"

	ShootNamespace = "shoot--local--local"
)

// HostsPath returns the path of the hosts.toml of an upstream on a node.
func HostsPath(host string) string {
	return path.Join(nodeconfig.CertsDir, host, nodeconfig.HostsFile)
}

// absent stands for the content of a file that does not exist.
const absent = "(absent)"

// Workers returns the shoot's workers.
func (p *Run) Workers() []*cluster.Node {
	return p.Session.Testbed.Shoot.Workers()
}

// Worker returns one of the shoot's workers, counted from 0.
func (p *Run) Worker(i int) *cluster.Node {
	p.Helper()
	workers := p.Workers()
	if i >= len(workers) {
		p.Fatalf("the shoot has %d workers, this needs %d", len(workers), i+1)
	}
	return workers[i]
}

// ReadFile returns the content of a file on a node, or absent.
func ReadFile(ctx context.Context, node *cluster.Node, path string) (string, error) {
	return node.Exec(ctx, "sh", "-c", `if [ -e "$1" ]; then cat "$1"; else echo "$2"; fi`, "sh", path, absent)
}

// readFiles is ReadFile for several files with one command, since a command on a node costs more
// than the reads.
func readFiles(ctx context.Context, node *cluster.Node, paths ...string) ([]string, error) {
	script := `for path do if [ -e "$path" ]; then cat "$path"; else echo ` + "'" + absent + "'" + `; fi; printf '\0'; done`
	out, err := node.Exec(ctx, append([]string{"sh", "-c", script, "sh"}, paths...)...)
	if err != nil {
		return nil, err
	}
	contents := strings.Split(out, "\x00")
	if len(contents) != len(paths)+1 {
		return nil, fmt.Errorf("%s returned %d files, want %d", node.Name(), len(contents)-1, len(paths))
	}
	return contents[:len(paths)], nil
}

// IsAbsent reports whether the content stands for a missing file.
func IsAbsent(content string) bool {
	return strings.TrimSpace(content) == absent
}

// File returns the content of a file on a node, or absent.
func (p *Run) File(ctx context.Context, node *cluster.Node, path string) string {
	p.Helper()
	content, err := ReadFile(ctx, node, path)
	p.Check(err)
	return content
}

// Hosts returns the hosts.toml of an upstream on a node, or absent.
func (p *Run) Hosts(ctx context.Context, node *cluster.Node, host string) string {
	p.Helper()
	return p.File(ctx, node, HostsPath(host))
}

// Fingerprint identifies a file by inode, time of change and content: equal fingerprints mean that
// the file was not touched.
func (p *Run) Fingerprint(ctx context.Context, node *cluster.Node, path string) string {
	p.Helper()
	out, err := node.Exec(ctx, "sh", "-c", `stat -c '%i %y' "$1" && sha256sum "$1"`, "sh", path)
	p.Check(err)
	return out
}

// Systemd returns a property of the extension's unit from the node's systemd.
func (p *Run) Systemd(ctx context.Context, node *cluster.Node, property string) string {
	p.Helper()
	out, err := node.Exec(ctx, "systemctl", "show", "--value", "--property", property, nodeconfig.UnitName)
	p.Check(err)
	return strings.TrimSpace(out)
}

// BlobStatus requests the first blob of an image from a cache, on a node, and returns the HTTP
// status.
func (p *Run) BlobStatus(ctx context.Context, node *cluster.Node, endpoint string, img Pushed) int {
	p.Helper()
	status, err := BlobStatus(ctx, node, endpoint, img)
	p.Check(err)
	return status
}

// BlobStatus is Run.BlobStatus with an error.
func BlobStatus(ctx context.Context, node *cluster.Node, endpoint string, img Pushed) (int, error) {
	url := fmt.Sprintf("%s/v2/%s/blobs/%s", endpoint, img.Repository, img.Blobs[0])
	out, err := node.Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null", "--write-out", "%{http_code}", url)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// Label is the short name of an upstream: alpha for alpha.upstream.test.
func Label(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

func labels(hosts []string) string {
	short := make([]string, 0, len(hosts))
	for _, host := range hosts {
		short = append(short, Label(host))
	}
	return strings.Join(short, ", ")
}
