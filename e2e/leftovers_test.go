//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
)

// undoLeftovers takes back what a scenario of a run that was killed may have left on a kept testbed.
func undoLeftovers(ctx context.Context, p *scenarioRun) error {
	failed := errors.Join(ignoreCaches(ctx, p, false), allowServices(ctx, p), uncordonWorkers(ctx, p))
	for _, worker := range p.suite.testbed.Shoot.Workers() {
		// Each part is a subshell, because it exits where there is nothing to undo.
		_, err := worker.Script(ctx, fmt.Sprintf("(%s\n)\n(%s\n)\n(%s\n)", releaseScript, endBlackholeScript, removeForeignScript))
		failed = errors.Join(failed, err)
	}
	return failed
}
