package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// description is the file that says what is in a folder. It is written last: a folder without it is no snapshot.
	description = "snapshot.json"
	// unfinished begins the name of a folder that is being written, or was when somebody was killed.
	unfinished = ".new-"
)

// Store is the folder with the snapshots of one testbed. It need not exist. One process at a time may write to it.
type Store string

// List returns all snapshots, oldest first.
func (s Store) List() ([]Snapshot, error) {
	entries, err := os.ReadDir(string(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var all []Snapshot
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), unfinished) {
			continue
		}
		found, err := s.read(entry.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, *found)
	}
	slices.SortStableFunc(all, func(a, b Snapshot) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// Get returns the snapshot of that name. One that is not there is an *UnknownError.
func (s Store) Get(name string) (*Snapshot, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	found, err := s.read(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	unknown := &UnknownError{Name: name}
	for _, other := range all {
		unknown.Names = append(unknown.Names, other.Name)
	}
	return nil, unknown
}

// read fails with fs.ErrNotExist for a folder that is no snapshot.
func (s Store) read(name string) (*Snapshot, error) {
	data, err := os.ReadFile(filepath.Join(string(s), name, description))
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", name, err)
	}
	found := &Snapshot{}
	if err := json.Unmarshal(data, found); err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", name, err)
	}
	if found.Version != version {
		return nil, fmt.Errorf("snapshot %s is of version %d, this testbed reads version %d", name, found.Version, version)
	}
	return found, nil
}

// Delete removes a snapshot, the description first: one that is removed in part is none.
func (s Store) Delete(name string) error {
	if _, err := s.Get(name); err != nil {
		return err
	}
	folder := filepath.Join(string(s), name)
	if err := errors.Join(os.Remove(filepath.Join(folder, description)), os.RemoveAll(folder)); err != nil {
		return fmt.Errorf("delete snapshot %s: %w", name, err)
	}
	_ = os.Remove(string(s)) // if it was the last one
	return nil
}

// path is that of a volume's archive.
func (s Store) path(snapshot string, volume Volume) string {
	return filepath.Join(string(s), snapshot, volume.archive())
}
