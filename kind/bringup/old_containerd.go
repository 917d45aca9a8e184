package bringup

import (
	"context"
	"fmt"
	"os"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// oldContainerd is the minor version of the old containerd. It does not know dial_timeout, which
// was added in 2.0.7 and 2.1.
const oldContainerd = "2.0"

// replacedPrograms are the replaced programs, in /usr/local/bin on a node.
var replacedPrograms = []string{"containerd", "containerd-shim-runc-v2"}

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
	worker, paths := workers[len(workers)-1], []string{}
	options := nodeimage.Options{Containerd: oldContainerd, Repository: t.Root, Progress: t.Recorder}
	programs, err := nodeimage.Programs(ctx, options, replacedPrograms...)
	if err != nil {
		return err
	}
	for _, name := range replacedPrograms {
		path := "/usr/local/bin/" + name
		paths = append(paths, path)
		content, err := os.ReadFile(programs[name])
		if err != nil {
			return fmt.Errorf("read the old %s: %w", name, err)
		}
		if err := worker.WriteFile(ctx, path+".new", 0o755, content); err != nil {
			return fmt.Errorf("install the old %s: %w", name, err)
		}
	}
	if _, err := worker.Script(ctx, replaceContainerd, paths...); err != nil {
		return fmt.Errorf("replace containerd of %s: %w", worker.Name(), err)
	}
	progress.Note(ctx, "containerd %s on %s", oldContainerd, worker.Name())
	return nil
}
