package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/preflight"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/snapshot"
)

// snapshotTimeout bounds saving and restoring: volumes may hold gigabytes.
const snapshotTimeout = 15 * time.Minute

// snapshotStore stands beside the state of the testbed, so that snapshots outlive Down.
func (t *Testbed) snapshotStore() snapshot.Store {
	return snapshot.Store(string(t.state) + ".snapshots")
}

// Snapshots returns the snapshots of this testbed, oldest first. They outlive Down: who saved them deletes them.
func (t *Testbed) Snapshots() ([]snapshot.Snapshot, error) { return t.snapshotStore().List() }

// DeleteSnapshot deletes one. A name that there is not is a *snapshot.UnknownError.
func (t *Testbed) DeleteSnapshot(name string) error {
	if _, err := t.snapshotStore().Get(name); err != nil {
		return err
	}
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return t.snapshotStore().Delete(name)
}

// SaveSnapshot stores the content of the volumes of all caches in the shoot under a name. Each cache is stopped for as long as hard
// links take; pulls wait for that. A name that is taken is a *snapshot.ExistsError. With dryRun nothing is stored: the sizes are what
// the volumes hold then.
func (t *Testbed) SaveSnapshot(ctx context.Context, name string, dryRun bool) (saved *snapshot.Snapshot, err error) {
	if err := t.snapshotStore().CheckNew(name); err != nil {
		return nil, err
	}
	err = t.withVolumes(ctx, "snapshot "+name, func(ctx context.Context, volumes []cacheVolume) error {
		planned, err := t.weigh(ctx, name, volumes)
		if err != nil {
			return err
		}
		if dryRun {
			progress.Skip(ctx, "dry run")
			saved = planned
			return nil
		}
		if err := preflight.CheckDisk([]preflight.Space{{Directory: string(t.snapshotStore()), Bytes: uint64(planned.Bytes())}}); err != nil {
			return err
		}
		saved, err = t.save(ctx, name, volumes)
		return err
	})
	return saved, err
}

// weigh asks how much the volumes hold.
func (t *Testbed) weigh(ctx context.Context, name string, volumes []cacheVolume) (*snapshot.Snapshot, error) {
	planned := &snapshot.Snapshot{Name: name}
	for _, volume := range volumes {
		var out bytes.Buffer
		if err := t.onNode(ctx, volume.node, snapshot.SizeArgv(volume.folder), nil, &out); err != nil {
			return nil, fmt.Errorf("size of volume %s: %w", volume.claim, err)
		}
		size, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("size of volume %s: %w", volume.claim, err)
		}
		planned.Volumes = append(planned.Volumes, snapshot.Volume{Claim: volume.claim, Upstream: volume.upstream, Bytes: size})
	}
	return planned, nil
}

func (t *Testbed) save(ctx context.Context, name string, volumes []cacheVolume) (*snapshot.Snapshot, error) {
	draft, err := t.snapshotStore().Begin(name)
	if err != nil {
		return nil, err
	}
	defer draft.Discard()
	for _, volume := range volumes {
		err := draft.Add(snapshot.Volume{Claim: volume.claim, Upstream: volume.upstream}, func(archive io.Writer) error {
			return t.onNode(ctx, volume.node, snapshot.SaveArgv(volume.pod, volume.folder), nil, archive)
		})
		if err != nil {
			return nil, err
		}
		progress.Note(ctx, "%s", volume.upstream)
	}
	return draft.Commit()
}

// RestoreSnapshot puts the content of a snapshot in the place of what the volumes of its caches hold now, and returns when these caches
// are ready again. Other caches are left alone. A name that there is not is a *snapshot.UnknownError; a cache that is not in the shoot,
// or an archive that was changed, is an error, and nothing was changed. With dryRun only that is looked at.
func (t *Testbed) RestoreSnapshot(ctx context.Context, name string, dryRun bool) (*snapshot.Snapshot, error) {
	wanted, err := t.snapshotStore().Get(name)
	if err != nil {
		return nil, err
	}
	return wanted, t.withVolumes(ctx, "snapshot "+name+" restored", func(ctx context.Context, volumes []cacheVolume) error {
		var claims []string
		for _, volume := range volumes {
			claims = append(claims, volume.claim)
		}
		if missing := wanted.Missing(claims); len(missing) > 0 {
			return fmt.Errorf("the shoot has no volume %s: `testbed shoot apply` a Shoot with the caches of the snapshot first",
				strings.Join(missing, ", "))
		}
		if err := t.snapshotStore().Verify(wanted); err != nil {
			return err
		}
		if dryRun {
			progress.Skip(ctx, "dry run")
			return nil
		}
		for _, saved := range wanted.Volumes {
			i := slices.IndexFunc(volumes, func(v cacheVolume) bool { return v.claim == saved.Claim })
			if err := t.restore(ctx, name, saved, volumes[i]); err != nil {
				return err
			}
			progress.Note(ctx, "%s", saved.Upstream)
		}
		return nil
	})
}

func (t *Testbed) restore(ctx context.Context, name string, saved snapshot.Volume, volume cacheVolume) error {
	archive, err := t.snapshotStore().Open(name, saved)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	if err := t.onNode(ctx, volume.node, snapshot.RestoreArgv(volume.pod, volume.folder), archive, nil); err != nil {
		return fmt.Errorf("restore volume %s: %w", volume.claim, err)
	}
	return t.replacePod(ctx, volume.pod)
}

// withVolumes runs a step on the volumes of the caches, as the only command that works on the testbed.
func (t *Testbed) withVolumes(ctx context.Context, step string, do func(context.Context, []cacheVolume) error) error {
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, snapshotTimeout, fmt.Errorf("%s: not done after %s", step, snapshotTimeout))
	defer cancel()
	if err := t.attachOnce(ctx); err != nil {
		return err
	}
	return t.recorder.Step(ctx, step, func(ctx context.Context) error {
		volumes, err := t.cacheVolumes(ctx)
		if err != nil {
			return err
		}
		if len(volumes) == 0 {
			return errors.New("no cache in the shoot has a volume")
		}
		return do(ctx, volumes)
	})
}

// onNode runs a program on a node of the shoot.
func (t *Testbed) onNode(ctx context.Context, node string, argv []string, in io.Reader, out io.Writer) error {
	var said bytes.Buffer
	code, err := t.Exec(ctx, node, argv, Streams{In: in, Out: out, Err: &said})
	if err == nil && code != 0 {
		err = fmt.Errorf("on %s: exit code %d: %s", node, code, strings.TrimSpace(said.String()))
	}
	return err
}
