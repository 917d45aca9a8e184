package snapshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Draft is a snapshot that is being written. It is not visible before Commit.
type Draft struct {
	store    Store
	folder   string
	snapshot Snapshot
}

// CheckNew returns a *NameError for an invalid name, and an *ExistsError if the snapshot exists.
func (s Store) CheckNew(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(string(s), name, description)); err == nil {
		return &ExistsError{name}
	}
	return nil
}

// Begin creates an empty draft and removes the drafts of killed processes. It returns the errors of
// CheckNew.
func (s Store) Begin(name string) (*Draft, error) {
	if err := s.CheckNew(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(s), 0o755); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", name, err)
	}
	drafts, _ := filepath.Glob(filepath.Join(string(s), draftPrefix+"*"))
	for _, folder := range drafts {
		_ = os.RemoveAll(folder)
	}
	folder, err := os.MkdirTemp(string(s), draftPrefix)
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", name, err)
	}
	created := time.Now().UTC().Truncate(time.Second)
	return &Draft{store: s, folder: folder, snapshot: Snapshot{Version: version, Name: name, Created: created}}, nil
}

// Add stores what write(w) writes as the archive of a volume, and records its size and SHA-256.
func (d *Draft) Add(volume Volume, write func(io.Writer) error) error {
	archive, err := os.OpenFile(filepath.Join(d.folder, volume.archive()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("store volume %s: %w", volume.Claim, err)
	}
	digest := sha256.New()
	written := write(io.MultiWriter(archive, digest))
	size, err := archive.Seek(0, io.SeekCurrent)
	if err := errors.Join(written, err, archive.Sync(), archive.Close()); err != nil {
		return fmt.Errorf("store volume %s: %w", volume.Claim, err)
	}
	volume.Bytes, volume.SHA256 = size, hex.EncodeToString(digest.Sum(nil))
	d.snapshot.Volumes = append(d.snapshot.Volumes, volume)
	return nil
}

// Commit turns the draft into a snapshot atomically.
func (d *Draft) Commit() (*Snapshot, error) {
	slices.SortFunc(d.snapshot.Volumes, func(a, b Volume) int { return cmp.Compare(a.Claim, b.Claim) })
	data, err := json.MarshalIndent(d.snapshot, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe snapshot %s: %w", d.snapshot.Name, err)
	}
	if err := file.Replace(filepath.Join(d.folder, description), append(data, '\n'), 0o644); err != nil {
		return nil, err
	}
	folder := filepath.Join(string(d.store), d.snapshot.Name)
	_ = os.RemoveAll(folder) // left by a killed Delete: Begin has checked that it is not a snapshot
	if err := os.Rename(d.folder, folder); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", d.snapshot.Name, err)
	}
	return &d.snapshot, nil
}

// Discard removes the draft. It does nothing after Commit.
func (d *Draft) Discard() { _ = os.RemoveAll(d.folder) }

// Verify reads all archives and returns an error if one has changed.
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
	digest := sha256.New()
	size, err := io.Copy(digest, archive)
	if err := errors.Join(err, archive.Close()); err != nil {
		return fmt.Errorf("volume %s: %w", volume.Claim, err)
	}
	if got := hex.EncodeToString(digest.Sum(nil)); size != volume.Bytes || got != volume.SHA256 {
		return fmt.Errorf("volume %s: its archive has changed: %d bytes with SHA-256 %s, want %d bytes with %s",
			volume.Claim, size, got, volume.Bytes, volume.SHA256)
	}
	return nil
}

// Open opens the archive of a volume.
func (s Store) Open(name string, volume Volume) (*os.File, error) {
	archive, err := os.Open(filepath.Join(string(s), name, volume.archive()))
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", volume.Claim, err)
	}
	return archive, nil
}
