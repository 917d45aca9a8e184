//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
)

// undoLeftovers takes back what a scenario of a run that was killed may have left on a kept testbed.
func undoLeftovers(ctx context.Context) error {
	failed := errors.Join(ignoreCaches(ctx, false), allowServices(ctx), uncordonWorkers(ctx))
	for _, worker := range p.suite.testbed.Shoot.Workers() {
		// Each part is a subshell, because it exits where there is nothing to undo.
		_, err := worker.Script(ctx, fmt.Sprintf("(%s\n)\n(%s\n)\n(%s\n)", releaseScript, endBlackholeScript, removeForeignScript))
		failed = errors.Join(failed, err)
	}
	return failed
}
