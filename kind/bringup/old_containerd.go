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

// containerdPrograms are the programs of containerd on a node, with the names for
// nodeimage.Programs of those of containerd 2.0.
var containerdPrograms = map[string]string{
	"/usr/local/bin/containerd":              nodeimage.OldContainerd,
	"/usr/local/bin/containerd-shim-runc-v2": nodeimage.OldShim,
}

// restoreContainerd ends replaceContainerd for the programs $@. Both keep containers running.
const restoreContainerd = `
restored=
for program in "$@"; do
  [[ -e $program.original ]] || continue
  mv -fT -- "$program.original" "$program"
  restored=yes
done
[[ -z $restored ]] || systemctl restart containerd.service`

// replaceContainerd replaces the programs $@ by the files beside them that end in .new. It restarts
// containerd if one of them differs.
const replaceContainerd = `
replaced=
for program in "$@"; do
  if cmp -s -- "$program.new" "$program"; then
    rm -f -- "$program.new"
    continue
  fi
  [[ -e $program.original ]] || cp -- "$program" "$program.original"
  mv -fT -- "$program.new" "$program"
  replaced=yes
done
[[ -z $replaced ]] || systemctl restart containerd.service`

// installOldContainerd makes the last worker run containerd 2.0, if the configuration says so.
func installOldContainerd(ctx context.Context, t *kind.Testbed) error {
	workers := t.Shoot.Workers()
	worker, paths := workers[len(workers)-1], slices.Sorted(maps.Keys(containerdPrograms))
	if !t.Config.Shoot.Containerd.OldWorker {
		if _, err := worker.Script(ctx, restoreContainerd, paths...); err != nil {
			return fmt.Errorf("restore containerd of %s: %w", worker.Name(), err)
		}
		return nil
	}
	options := nodeimage.Options{Repository: t.Root, Progress: t.Recorder}
	programs, err := nodeimage.Programs(ctx, options, nodeimage.OldContainerd, nodeimage.OldShim)
	if err != nil {
		return err
	}
	for _, path := range paths {
		content, err := os.ReadFile(programs[containerdPrograms[path]])
		if err != nil {
			return fmt.Errorf("read a program of containerd: %w", err)
		}
		if err := worker.WriteFile(ctx, path+".new", 0o755, content); err != nil {
			return err
		}
	}
	if _, err := worker.Script(ctx, replaceContainerd, paths...); err != nil {
		return fmt.Errorf("replace containerd of %s: %w", worker.Name(), err)
	}
	progress.Note(ctx, "%s on %s", nodeimage.OldContainerd, worker.Name())
	return nil
}
