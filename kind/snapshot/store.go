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
	// description is the file that describes a snapshot. It is written last: a folder without it is
	// not a snapshot.
	description = "snapshot.json"
	// draftPrefix is the prefix of the folders of drafts.
	draftPrefix = ".new-"
)

// Store is the folder with the snapshots of one testbed. It may be missing. Only one process may
// write to it at a time.
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
		if strings.HasPrefix(entry.Name(), draftPrefix) {
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

// Get returns the snapshot with a name, or an *UnknownError.
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

// read returns fs.ErrNotExist for a folder that is not a snapshot.
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
		return nil, fmt.Errorf("snapshot %s has version %d, but this testbed reads version %d", name, found.Version, version)
	}
	return found, nil
}

// Delete removes a snapshot. It removes the description first, so that a partly removed folder is
// not a snapshot.
func (s Store) Delete(name string) error {
	if _, err := s.Get(name); err != nil {
		return err
	}
	folder := filepath.Join(string(s), name)
	if err := errors.Join(os.Remove(filepath.Join(folder, description)), os.RemoveAll(folder)); err != nil {
		return fmt.Errorf("delete snapshot %s: %w", name, err)
	}
	_ = os.Remove(string(s)) // fails unless the store is empty
	return nil
}
