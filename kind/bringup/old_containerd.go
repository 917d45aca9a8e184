package bringup

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// replacedPrograms maps the path of each replaced program on a node to the name of its containerd
// 2.0 version in nodeimage.Programs.
var replacedPrograms = map[string]string{
	"/usr/local/bin/containerd":              nodeimage.OldContainerd,
	"/usr/local/bin/containerd-shim-runc-v2": nodeimage.OldShim,
}

// replaceContainerd replaces each program in $@ with the file <program>.new. It then restarts
// containerd, unless the running containerd already is the file $1. Containers keep running.
const replaceContainerd = `
for program in "$@"; do
  if cmp -s -- "$program.new" "$program"; then
    rm -f -- "$program.new"
    continue
  fi
  mv -fT -- "$program.new" "$program"
done
running=$(systemctl show --property=MainPID --value containerd.service)
[[ /proc/$running/exe -ef $1 ]] || systemctl restart containerd.service`

// installOldContainerd makes the last worker run containerd 2.0 if OldWorker is set.
func installOldContainerd(ctx context.Context, t *kind.Testbed) error {
	if !t.Config.Shoot.Containerd.OldWorker {
		return nil
	}
	workers := t.Shoot.Workers()
	worker, paths := workers[len(workers)-1], slices.Sorted(maps.Keys(replacedPrograms))
	options := nodeimage.Options{Repository: t.Root, Progress: t.Recorder}
	programs, err := nodeimage.Programs(ctx, options, nodeimage.OldContainerd, nodeimage.OldShim)
	if err != nil {
		return err
	}
	for _, path := range paths {
		content, err := os.ReadFile(programs[replacedPrograms[path]])
		if err != nil {
			return fmt.Errorf("read %s: %w", replacedPrograms[path], err)
		}
		if err := worker.WriteFile(ctx, path+".new", 0o755, content); err != nil {
			return fmt.Errorf("install %s: %w", replacedPrograms[path], err)
		}
	}
	if _, err := worker.Script(ctx, replaceContainerd, paths...); err != nil {
		return fmt.Errorf("replace containerd of %s: %w", worker.Name(), err)
	}
	progress.Note(ctx, "%s on %s", nodeimage.OldContainerd, worker.Name())
	return nil
}
