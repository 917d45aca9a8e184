//go:build e2e

package rig

import (
	"context"
	"fmt"
	"path"
	"strings"

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

// IsAbsent reports whether the content is what ReadFile returns for a missing file.
func IsAbsent(content string) bool {
	return strings.TrimSpace(content) == absent
}

// File is like ReadFile, but fails the scenario after an error.
func (p *Run) File(ctx context.Context, node *cluster.Node, path string) string {
	p.Helper()
	return must(ReadFile(ctx, node, path))(p)
}

// Hosts returns the hosts.toml of an upstream on a node, or "(absent)". An error fails the
// scenario.
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

// Label returns the short name of an upstream: alpha for alpha.upstream.test.
func Label(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

// stopAgentScript stops gardener-node-agent. A condition on the unit keeps gardenlet's flow from
// starting the unit. If the scenario is killed, a timer runs startAgentScript after three minutes.
const stopAgentScript = `
mkdir -p /run/systemd/system/gardener-node-agent.service.d
printf '[Unit]\nConditionPathExists=!/run/e2e-hold\n' >/run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
touch /run/e2e-hold
systemctl daemon-reload
systemctl stop gardener-node-agent.service
systemd-run --quiet --collect --unit="e2e-release-$EPOCHSECONDS" --on-active=3min bash -c "$1"`

// startAgentScript reverts stopAgentScript, or does nothing on a node without the condition.
const startAgentScript = `
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
			if _, err := worker.Script(ctx, startAgentScript); err != nil {
				return fmt.Errorf("release gardener-node-agent: %w", err)
			}
		}
		return nil
	}
	p.Afterwards(ctx, release)
	for _, worker := range workers {
		_, err := worker.Script(ctx, stopAgentScript, startAgentScript)
		p.Check(err)
	}
	return release
}
