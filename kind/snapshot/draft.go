package snapshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Draft is a snapshot that is being written. Nobody sees it before Commit.
type Draft struct {
	store    Store
	folder   string
	snapshot Snapshot
}

// CheckNew returns a *NameError for what cannot be a name, and an *ExistsError for one that is taken.
func (s Store) CheckNew(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(string(s), name, description)); err == nil {
		return &ExistsError{name}
	}
	return nil
}

// Begin makes an empty draft, and removes what somebody who was killed has left. A name that is taken is an *ExistsError.
func (s Store) Begin(name string) (*Draft, error) {
	if err := s.CheckNew(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(s), 0o755); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", name, err)
	}
	if left, err := filepath.Glob(filepath.Join(string(s), unfinished+"*")); err == nil {
		for _, folder := range left {
			_ = os.RemoveAll(folder)
		}
	}
	folder, err := os.MkdirTemp(string(s), unfinished)
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", name, err)
	}
	return &Draft{store: s, folder: folder, snapshot: Snapshot{Version: version, Name: name, Created: time.Now().UTC().Truncate(time.Second)}}, nil
}

// Add stores what write writes as the archive of a volume, durably. Bytes and SHA256 of the volume are set here.
func (d *Draft) Add(volume Volume, write func(io.Writer) error) error {
	archive, err := os.OpenFile(filepath.Join(d.folder, volume.archive()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("store volume %s: %w", volume.Claim, err)
	}
	counted := &counter{hash: sha256.New()}
	if err := errors.Join(write(io.MultiWriter(archive, counted)), archive.Sync(), archive.Close()); err != nil {
		return fmt.Errorf("store volume %s: %w", volume.Claim, err)
	}
	volume.Bytes, volume.SHA256 = counted.bytes, hex.EncodeToString(counted.hash.Sum(nil))
	d.snapshot.Volumes = append(d.snapshot.Volumes, volume)
	return nil
}

// counter is the size and the digest of what is written to it.
type counter struct {
	hash  hash.Hash
	bytes int64
}

func (c *counter) Write(data []byte) (int, error) {
	c.bytes += int64(len(data))
	return c.hash.Write(data)
}

// Commit makes the draft a snapshot: all of it, or nothing.
func (d *Draft) Commit() (*Snapshot, error) {
	slices.SortFunc(d.snapshot.Volumes, func(a, b Volume) int { return cmp.Compare(a.Claim, b.Claim) })
	data, err := json.MarshalIndent(d.snapshot, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe snapshot %s: %w", d.snapshot.Name, err)
	}
	if err := file.Replace(filepath.Join(d.folder, description), append(data, '\n'), 0o644); err != nil {
		return nil, err
	}
	place := filepath.Join(string(d.store), d.snapshot.Name)
	_ = os.RemoveAll(place) // a snapshot that was deleted in part: Begin has seen that there is none
	if err := os.Rename(d.folder, place); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", d.snapshot.Name, err)
	}
	return &d.snapshot, nil
}

// Discard removes the draft; after Commit there is nothing to remove.
func (d *Draft) Discard() { _ = os.RemoveAll(d.folder) }

// Verify reads all archives and fails if one is not what was saved.
func (s Store) Verify(snapshot *Snapshot) error {
	for _, volume := range snapshot.Volumes {
		if err := s.verify(snapshot.Name, volume); err != nil {
			return fmt.Errorf("snapshot %s: %w", snapshot.Name, err)
		}
	}
	return nil
}

func (s Store) verify(name string, volume Volume) error {
	archive, err := s.Open(name, volume)
	if err != nil {
		return err
	}
	counted := &counter{hash: sha256.New()}
	_, err = io.Copy(counted, archive)
	if err := errors.Join(err, archive.Close()); err != nil {
		return fmt.Errorf("volume %s: %w", volume.Claim, err)
	}
	if got := hex.EncodeToString(counted.hash.Sum(nil)); counted.bytes != volume.Bytes || got != volume.SHA256 {
		return fmt.Errorf("volume %s: its archive has changed: %d bytes with SHA-256 %s, %d bytes with %s were saved",
			volume.Claim, counted.bytes, got, volume.Bytes, volume.SHA256)
	}
	return nil
}

// Open opens the archive of a volume.
func (s Store) Open(name string, volume Volume) (*os.File, error) {
	archive, err := os.Open(s.path(name, volume))
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", volume.Claim, err)
	}
	return archive, nil
}
