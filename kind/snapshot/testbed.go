package snapshot

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

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

// PlanDelete describes what Delete would do. It returns an *UnknownError for an unknown name.
func PlanDelete(t *kind.Testbed, name string) ([]string, error) {
	if _, err := storeOf(t).Get(name); err != nil {
		return nil, err
	}
	return []string{"delete snapshot " + name}, nil
}

// timeout bounds Save and Restore: volumes may hold gigabytes.
const timeout = 15 * time.Minute

// storeOf returns the store next to the state of the testbed, so `testbed down` keeps snapshots.
func storeOf(t *kind.Testbed) Store {
	return Store(string(t.State) + ".snapshots")
}

// List returns the snapshots of this testbed, oldest first. `testbed down` does not delete them.
func List(t *kind.Testbed) ([]Snapshot, error) { return storeOf(t).List() }

// Delete deletes a snapshot. It returns an *UnknownError for an unknown name.
func Delete(t *kind.Testbed, name string) error {
	if _, err := storeOf(t).Get(name); err != nil {
		return err
	}
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return storeOf(t).Delete(name)
}

// Save stores the content of the volumes of all caches in the shoot. Each cache is paused, and its
// pulls wait, while hard links to its files are created. If the snapshot exists, Save returns an
// *ExistsError. With dryRun nothing is stored, and the sizes are those of the volumes.
func Save(ctx context.Context, t *kind.Testbed, name string, dryRun bool) (saved *Snapshot, err error) {
	if err := storeOf(t).CheckNew(name); err != nil {
		return nil, err
	}
	err = withVolumes(ctx, t, "snapshot "+name, func(ctx context.Context, volumes []cacheVolume) error {
		planned, err := sizes(ctx, t, name, volumes)
		if err != nil {
			return err
		}
		if dryRun {
			progress.Skip(ctx, "dry run")
			saved = planned
			return nil
		}
		if err := preflight.Check(ctx, preflight.Requirements{Disk: []preflight.Space{{Directory: string(storeOf(t)), Bytes: uint64(planned.Bytes())}}}); err != nil {
			return err
		}
		saved, err = save(ctx, t, name, volumes)
		return err
	})
	return saved, err
}

// sizes returns a snapshot with the sizes of the volumes.
func sizes(ctx context.Context, t *kind.Testbed, name string, volumes []cacheVolume) (*Snapshot, error) {
	planned := &Snapshot{Name: name}
	for _, volume := range volumes {
		var out bytes.Buffer
		if err := onNode(ctx, t, volume.node, argv("size", volume.folder), nil, &out); err != nil {
			return nil, fmt.Errorf("size of volume %s: %w", volume.claim, err)
		}
		size, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("size of volume %s: %w", volume.claim, err)
		}
		planned.Volumes = append(planned.Volumes, Volume{Claim: volume.claim, Upstream: volume.upstream, Bytes: size})
	}
	return planned, nil
}

func save(ctx context.Context, t *kind.Testbed, name string, volumes []cacheVolume) (*Snapshot, error) {
	draft, err := storeOf(t).Begin(name)
	if err != nil {
		return nil, err
	}
	defer draft.Discard()
	for _, volume := range volumes {
		err := draft.Add(Volume{Claim: volume.claim, Upstream: volume.upstream}, func(archive io.Writer) error {
			return onNode(ctx, t, volume.node, argv("save", volume.pod, volume.folder), nil, archive)
		})
		if err != nil {
			return nil, err
		}
		progress.Note(ctx, "%s", volume.upstream)
	}
	return draft.Commit()
}

// Restore replaces the volumes of the caches in the snapshot, and returns when these caches are
// ready again. An unknown name is an *UnknownError. If a cache is missing in the shoot or an
// archive has changed, Restore changes nothing and fails. With dryRun it only checks.
func Restore(ctx context.Context, t *kind.Testbed, name string, dryRun bool) (*Snapshot, error) {
	wanted, err := storeOf(t).Get(name)
	if err != nil {
		return nil, err
	}
	return wanted, withVolumes(ctx, t, "snapshot "+name+" restored", func(ctx context.Context, volumes []cacheVolume) error {
		var claims []string
		for _, volume := range volumes {
			claims = append(claims, volume.claim)
		}
		if missing := wanted.Missing(claims); len(missing) > 0 {
			return fmt.Errorf("the shoot has no volume %s: `testbed shoot apply` a Shoot with the caches of the snapshot first",
				strings.Join(missing, ", "))
		}
		if err := storeOf(t).Verify(wanted); err != nil {
			return err
		}
		if dryRun {
			progress.Skip(ctx, "dry run")
			return nil
		}
		for _, saved := range wanted.Volumes {
			i := slices.IndexFunc(volumes, func(v cacheVolume) bool { return v.claim == saved.Claim })
			if err := restore(ctx, t, name, saved, volumes[i]); err != nil {
				return err
			}
			progress.Note(ctx, "%s", saved.Upstream)
		}
		return nil
	})
}

func restore(ctx context.Context, t *kind.Testbed, name string, saved Volume, volume cacheVolume) error {
	archive, err := storeOf(t).Open(name, saved)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	if err := onNode(ctx, t, volume.node, argv("restore", volume.pod, volume.folder), archive, nil); err != nil {
		return fmt.Errorf("restore volume %s: %w", volume.claim, err)
	}
	return replacePod(ctx, t, volume.pod)
}

// withVolumes runs a step with the volumes of the caches, and holds the lock of the testbed.
func withVolumes(ctx context.Context, t *kind.Testbed, step string, do func(context.Context, []cacheVolume) error) error {
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := progress.Within(ctx, timeout, fmt.Sprintf("%s: not done", step))
	defer cancel()
	if err := t.AttachOnce(ctx); err != nil {
		return err
	}
	return t.Recorder.Step(ctx, step, func(ctx context.Context) error {
		volumes, err := cacheVolumes(ctx, t)
		if err != nil {
			return err
		}
		if len(volumes) == 0 {
			return errors.New("no cache in the shoot has a volume")
		}
		return do(ctx, volumes)
	})
}

func onNode(ctx context.Context, t *kind.Testbed, node string, argv []string, in io.Reader, out io.Writer) error {
	var stderr bytes.Buffer
	code, err := shell.Exec(ctx, t, node, argv, shell.Streams{In: in, Out: out, Err: &stderr})
	if err == nil && code != 0 {
		err = fmt.Errorf("on %s: exit code %d: %s", node, code, strings.TrimSpace(stderr.String()))
	}
	return err
}
