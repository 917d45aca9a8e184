//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// absent is what shows in place of a file that is not there.
const absent = "(absent)"

// Workers returns the shoot's workers.
func (p *scenarioRun) Workers() []*cluster.Node {
	return p.suite.testbed.Shoot.Workers()
}

// Worker returns one of the shoot's workers, counted from 0.
func (p *scenarioRun) Worker(i int) *cluster.Node {
	p.Helper()
	workers := p.Workers()
	if i >= len(workers) {
		p.Fatalf("the shoot has %d workers, this needs %d", len(workers), i+1)
	}
	return workers[i]
}

// readFile returns the content of a file on a node, or absent.
func readFile(ctx context.Context, node *cluster.Node, path string) (string, error) {
	return node.Exec(ctx, "sh", "-c", `if [ -e "$1" ]; then cat "$1"; else echo "$2"; fi`, "sh", path, absent)
}

// readFiles is readFile for several files in one go: each command on a node costs more than all that it reads.
func readFiles(ctx context.Context, node *cluster.Node, paths ...string) ([]string, error) {
	script := `for path do if [ -e "$path" ]; then cat "$path"; else echo ` + "'" + absent + "'" + `; fi; printf '\0'; done`
	out, err := node.Exec(ctx, append([]string{"sh", "-c", script, "sh"}, paths...)...)
	if err != nil {
		return nil, err
	}
	contents := strings.Split(out, "\x00")
	if len(contents) != len(paths)+1 {
		return nil, fmt.Errorf("%s answered with %d files, want %d", node.Name(), len(contents)-1, len(paths))
	}
	return contents[:len(paths)], nil
}

func isAbsent(content string) bool {
	return strings.TrimSpace(content) == absent
}

// File returns the content of a file on a node, or absent.
func (p *scenarioRun) File(ctx context.Context, node *cluster.Node, path string) string {
	p.Helper()
	content, err := readFile(ctx, node, path)
	p.Check(err)
	return content
}

// Hosts returns the hosts.toml of an upstream on a node, or absent.
func (p *scenarioRun) Hosts(ctx context.Context, node *cluster.Node, host string) string {
	p.Helper()
	return p.File(ctx, node, hostsPath(host))
}

// Fingerprint identifies a file by inode, time of change and content: equal fingerprints mean that nobody touched it.
func (p *scenarioRun) Fingerprint(ctx context.Context, node *cluster.Node, path string) string {
	p.Helper()
	out, err := node.Exec(ctx, "sh", "-c", `stat -c '%i %y' "$1" && sha256sum "$1"`, "sh", path)
	p.Check(err)
	return out
}

// Systemd returns a property of our unit as the node's systemd sees it.
func (p *scenarioRun) Systemd(ctx context.Context, node *cluster.Node, property string) string {
	p.Helper()
	out, err := node.Exec(ctx, "systemctl", "show", "--value", "--property", property, unitName)
	p.Check(err)
	return strings.TrimSpace(out)
}

// BlobStatus asks a cache, from a node, for the first blob of an image and returns the HTTP status.
func (p *scenarioRun) BlobStatus(ctx context.Context, node *cluster.Node, endpoint string, img pushed) int {
	p.Helper()
	status, err := blobStatus(ctx, node, endpoint, img)
	p.Check(err)
	return status
}

func blobStatus(ctx context.Context, node *cluster.Node, endpoint string, img pushed) (int, error) {
	url := fmt.Sprintf("%s/v2/%s/blobs/%s", endpoint, img.repository, img.blobs[0])
	out, err := node.Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null", "--write-out", "%{http_code}", url)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}
