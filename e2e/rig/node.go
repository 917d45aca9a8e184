//go:build e2e

package rig

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Names of the testbed that must not change. They are repeated here instead of imported, so
// that a scenario fails when one of them changes.
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

// absent is the content that ReadFile returns for a file that does not exist.
const absent = "(absent)"

// Workers returns the shoot's workers, or nil for a session without nodes.
func (p *Run) Workers() []*cluster.Node {
	if p.Session.Testbed.Shoot == nil {
		return nil
	}
	return p.Session.Testbed.Shoot.Workers()
}

// Worker returns the shoot's i-th worker, counted from 0.
func (p *Run) Worker(i int) *cluster.Node {
	p.Helper()
	workers := p.Workers()
	if i >= len(workers) {
		p.Fatalf("the shoot has %d workers, this needs %d", len(workers), i+1)
	}
	return workers[i]
}

// ReadFile returns the content of a file on a node, or "(absent)" if the file does not exist.
func ReadFile(ctx context.Context, node *cluster.Node, path string) (string, error) {
	return node.Exec(ctx, "sh", "-c", `if [ -e "$1" ]; then cat "$1"; else echo "$2"; fi`, "sh", path, absent)
}

// readHosts returns the hosts.toml of each upstream on a node, or "(absent)". One command reads all
// files, because starting a command costs more than the reads.
func readHosts(ctx context.Context, node *cluster.Node, hosts []string) ([]string, error) {
	argv := []string{"sh", "-c", `for path do if [ -e "$path" ]; then cat "$path"; else echo '` + absent + `'; fi; printf '\0'; done`, "sh"}
	for _, host := range hosts {
		argv = append(argv, HostsPath(host))
	}
	out, err := node.Exec(ctx, argv...)
	contents := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if err == nil && len(contents) != len(hosts) {
		err = fmt.Errorf("%s returned %d files, want %d", node.Name(), len(contents), len(hosts))
	}
	return contents, err
}

// IsAbsent reports whether the content is that of a file that does not exist.
func IsAbsent(content string) bool {
	return strings.TrimSpace(content) == absent
}

// File is like ReadFile, but fails the scenario after an error.
func (p *Run) File(ctx context.Context, node *cluster.Node, path string) string {
	p.Helper()
	return must(ReadFile(ctx, node, path))(p)
}

// Hosts returns the hosts.toml of an upstream on a node, like File.
func (p *Run) Hosts(ctx context.Context, node *cluster.Node, host string) string {
	p.Helper()
	return p.File(ctx, node, HostsPath(host))
}

// Fingerprint returns inode, modification time and checksum of a file on a node. The result changes
// when the file is written or replaced.
func (p *Run) Fingerprint(ctx context.Context, node *cluster.Node, path string) string {
	p.Helper()
	return must(node.Exec(ctx, "sh", "-c", `stat -c '%i %y' "$1" && sha256sum "$1"`, "sh", path))(p)
}

// Systemd returns a property of the extension's systemd unit on a node.
func (p *Run) Systemd(ctx context.Context, node *cluster.Node, property string) string {
	p.Helper()
	out, err := node.Exec(ctx, "systemctl", "show", "--value", "--property", property, nodeconfig.UnitName)
	p.Check(err)
	return strings.TrimSpace(out)
}

// BlobStatus lets a node request the image's first blob from a cache, and returns the HTTP status.
func (p *Run) BlobStatus(ctx context.Context, node *cluster.Node, endpoint string, img Pushed) int {
	p.Helper()
	return must(httpStatus(ctx, node, fmt.Sprintf("%s/v2/%s/blobs/%s", endpoint, img.Repository, img.Blobs[0])))(p)
}

// httpStatus does not verify the cache's certificate: the scenario tls proves who trusts it.
func httpStatus(ctx context.Context, node *cluster.Node, url string) (int, error) {
	out, err := node.Exec(ctx, "curl", "--silent", "--show-error", "--insecure", "--max-time", "10",
		"--output", "/dev/null", "--write-out", "%{http_code}", url)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// Label returns the short name of an upstream: alpha for alpha.upstream.test.
func Label(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

// holdScript stops gardener-node-agent. A condition on the unit keeps gardenlet's flow from
// starting the unit. If the scenario is killed, a timer runs releaseScript after three minutes.
const holdScript = `
mkdir -p /run/systemd/system/gardener-node-agent.service.d
printf '[Unit]\nConditionPathExists=!/run/e2e-hold\n' >/run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
touch /run/e2e-hold
systemctl daemon-reload
systemctl stop gardener-node-agent.service
systemd-run --quiet --collect --unit="e2e-release-$EPOCHSECONDS" --on-active=3min bash -c "$1"`

// releaseScript reverts holdScript, or does nothing on a node without the condition.
const releaseScript = `
[[ -e /run/e2e-hold ]] || exit 0
systemctl stop 'e2e-release-*.timer'
rm -rf /run/e2e-hold /run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
systemctl daemon-reload
systemctl start gardener-node-agent.service`

// HoldNodeAgents stops gardener-node-agent on every worker until the returned function is called or
// the scenario ends. The agent also removes files that are no longer in the OperatingSystemConfig.
// While the agent is stopped, only the extension's cleaner removes files from nodes.
func (p *Run) HoldNodeAgents(ctx context.Context) (release func(ctx context.Context) error) {
	p.Helper()
	workers := p.Workers()
	release = func(ctx context.Context) error {
		for _, worker := range workers {
			if _, err := worker.Script(ctx, releaseScript); err != nil {
				return fmt.Errorf("release gardener-node-agent: %w", err)
			}
		}
		return nil
	}
	p.Afterwards(ctx, release)
	for _, worker := range workers {
		_, err := worker.Script(ctx, holdScript, releaseScript)
		p.Check(err)
	}
	return release
}

// AwaitUpstreams waits until the caches reach their upstreams. On a node that has just started, a
// ready cache may not reach its upstream yet: without kube-proxy's rules a DNS lookup fails, and
// the failure is cached for five seconds. Meanwhile nodes pull directly.
//
// A cache answers 404 for a digest that its upstream does not have, and 500 if the upstream does
// not answer. For a tag it answers 404 in both cases.
func (p *Run) AwaitUpstreams(ctx context.Context, hosts ...string) {
	p.Helper()
	endpoints := p.Endpoints(ctx)
	for _, host := range hosts {
		url := endpoints[host] + "/v2/e2e/nothing/manifests/sha256:" + strings.Repeat("0", 64)
		p.Await(ctx, "the cache of "+host+" reaches it", 30*time.Second, func(ctx context.Context) (bool, string, error) {
			status, err := httpStatus(ctx, p.Worker(0), url)
			return err == nil && status == http.StatusNotFound, fmt.Sprintf("HTTP status %d (%v)", status, err), nil
		})
	}
}

// OnVolume runs a bash script on the worker that has the volume of the cache for an upstream, and
// returns its output. $1 is the folder of the volume, $2 and more are the arguments. The scenario
// fails if no worker has the folder.
func (p *Run) OnVolume(ctx context.Context, host, script string, args ...string) string {
	p.Helper()
	for _, name := range p.Claims(ctx, host) {
		claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, claim))
		p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
		folder := volumeFolder(volume)
		for _, worker := range p.Workers() {
			if _, err := worker.Exec(ctx, "test", "-d", folder); err != nil {
				continue
			}
			out, err := worker.Script(ctx, script, append([]string{folder}, args...)...)
			p.Check(err)
			return strings.TrimSpace(out)
		}
	}
	p.Fatalf("no worker has the volume of %s's cache as a folder", host)
	return ""
}

// storedScript prints how many of the digests $2 and so on have a file below $1, wherever it is.
// Folders may vanish meanwhile, but not $1.
const storedScript = `folder=$1; shift
found=$(find "$folder" -ignore_readdir_race -name data -printf '%h\n' || [ -d "$folder" ])
for hex do [[ $found != *"/$hex"* ]] || echo "$hex"; done | wc -l`

// Stored returns how many of the manifests and blobs are on the volume of the upstream's cache. It
// is 0 for a new volume; to prove a deletion, prove first that they were there.
func (p *Run) Stored(ctx context.Context, host string, digests ...string) int {
	p.Helper()
	var names []string
	for _, digest := range digests {
		names = append(names, strings.TrimPrefix(digest, "sha256:"))
	}
	count, err := strconv.Atoi(p.OnVolume(ctx, host, storedScript, names...))
	p.Check(err)
	return count
}

// volumeFolder returns the folder of a hostPath or local volume, and a path that does not exist for
// any other volume.
func volumeFolder(volume *corev1.PersistentVolume) string {
	switch source := volume.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		return source.HostPath.Path
	case source.Local != nil:
		return source.Local.Path
	default:
		return "/no-folder"
	}
}
