package bringup

import (
	"context"
	"fmt"
	"os"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// restoreContainerd ends replaceContainerd. Both keep containers running.
const restoreContainerd = `
[[ -e /usr/local/bin/containerd.original ]] || exit 0
mv -fT -- /usr/local/bin/containerd.original /usr/local/bin/containerd
systemctl restart containerd.service`

// replaceContainerd replaces containerd by the file $1, and restarts it if that is another one.
const replaceContainerd = `
if cmp -s -- "$1" /usr/local/bin/containerd; then
  rm -f -- "$1"
  exit 0
fi
[[ -e /usr/local/bin/containerd.original ]] || cp -- /usr/local/bin/containerd /usr/local/bin/containerd.original
mv -fT -- "$1" /usr/local/bin/containerd
systemctl restart containerd.service`

// installOldContainerd makes the last worker run containerd 2.0, if the configuration says so.
func installOldContainerd(ctx context.Context, t *kind.Testbed) error {
	workers := t.Shoot.Workers()
	worker := workers[len(workers)-1]
	if !t.Config.Shoot.Containerd.OldWorker {
		if _, err := worker.Script(ctx, restoreContainerd); err != nil {
			return fmt.Errorf("restore containerd of %s: %w", worker.Name(), err)
		}
		return nil
	}
	programs, err := nodeimage.Programs(ctx, nodeimage.Options{Repository: t.Root, Progress: t.Recorder}, nodeimage.OldContainerd)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(programs[nodeimage.OldContainerd])
	if err != nil {
		return fmt.Errorf("read containerd: %w", err)
	}
	const staged = "/usr/local/bin/containerd.new"
	if err := worker.WriteFile(ctx, staged, 0o755, content); err != nil {
		return err
	}
	if _, err := worker.Script(ctx, replaceContainerd, staged); err != nil {
		return fmt.Errorf("replace containerd of %s: %w", worker.Name(), err)
	}
	progress.Note(ctx, "%s on %s", nodeimage.OldContainerd, worker.Name())
	return nil
}
