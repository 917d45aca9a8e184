//go:build e2e

package e2e

import (
	"context"
	"fmt"
)

// holdScript stops gardener-node-agent and keeps it from being started, as gardenlet's flow would do, by a condition on
// its unit. Should nobody release it, a timer does: a kept testbed must not stay without its node agent.
const holdScript = `
mkdir -p /run/systemd/system/gardener-node-agent.service.d
printf '[Unit]\nConditionPathExists=!/run/e2e-hold\n' >/run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
touch /run/e2e-hold
systemctl daemon-reload
systemctl stop gardener-node-agent.service
systemd-run --quiet --collect --unit="e2e-release-$EPOCHSECONDS" --on-active=3min bash -c "$1"`

// releaseScript does nothing on a node that is not held.
const releaseScript = `
[[ -e /run/e2e-hold ]] || exit 0
systemctl stop 'e2e-release-*.timer'
rm -rf /run/e2e-hold /run/systemd/system/gardener-node-agent.service.d/e2e-hold.conf
systemctl daemon-reload
systemctl start gardener-node-agent.service`

// HoldNodeAgents stops gardener-node-agent on every worker until release is called, or the scenario ends. What is taken
// off a node meanwhile was taken off by the extension's cleaner, and by nobody else: gardener-node-agent, too, removes
// what is not in the OperatingSystemConfig any more.
func (p *scenarioRun) HoldNodeAgents(ctx context.Context) (release func(ctx context.Context) error) {
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
