package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const version = 1 // of the format of descriptions

// Snapshot describes a snapshot.
type Snapshot struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Volumes []Volume  `json:"volumes"` // sorted by claim
}

// Volume describes the archive of one volume.
type Volume struct {
	// Claim is the name of the PersistentVolumeClaim, Upstream the upstream of the cache.
	Claim    string `json:"claim"`
	Upstream string `json:"upstream"`
	Bytes    int64  `json:"bytes"` // the size of the archive, SHA256 its digest
	SHA256   string `json:"sha256,omitempty"`
}

// archive returns the file name of the archive. The name of a claim cannot contain a slash.
func (v Volume) archive() string { return v.Claim + ".tar" }

// Bytes returns the size of all archives.
func (s *Snapshot) Bytes() int64 {
	var sum int64
	for _, volume := range s.Volumes {
		sum += volume.Bytes
	}
	return sum
}

// UnknownError is the error for a snapshot that does not exist. Names lists the existing snapshots.
type UnknownError struct {
	Name  string
	Names []string
}

func (e *UnknownError) Error() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("snapshot %s not found: there are no snapshots, create one with `testbed snapshot save`", e.Name)
	}
	return fmt.Sprintf("snapshot %s not found, use one of %s", e.Name, strings.Join(e.Names, ", "))
}

// UsageError marks the error for internal/program: exit code 2.
func (*UnknownError) UsageError() {}

// ExistsError is the error for a new snapshot if there is already one with that name.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("snapshot %s already exists: use another name, or run `testbed snapshot delete %s` first", e.Name, e.Name)
}

// UsageError marks the error for internal/program: exit code 2.
func (*ExistsError) UsageError() {}

// NameError is the error for an invalid name.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("invalid snapshot name %q: use 1 to 40 lower case letters and digits, with - or . between them", e.Name)
}

// UsageError marks the error for internal/program: exit code 2.
func (*NameError) UsageError() {}

var validName = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,38}[a-z0-9])?$`)

// CheckName returns a *NameError for an invalid name.
func CheckName(name string) error {
	if !validName.MatchString(name) || strings.Contains(name, "..") {
		return &NameError{name}
	}
	return nil
}

// Missing returns those claims of the snapshot that are not among the given ones.
func (s *Snapshot) Missing(claims []string) []string {
	var missing []string
	for _, volume := range s.Volumes {
		if !slices.Contains(claims, volume.Claim) {
			missing = append(missing, volume.Claim)
		}
	}
	return missing
}

const (
	// description is written last, so a folder without it is not a snapshot.
	description = "snapshot.json"
	draftPrefix = ".new-" // the prefix of the folders of drafts
)

// Store is the folder with the snapshots of a testbed. The folder may be missing. Only one process
// at a time may write to it.
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

// Delete removes a snapshot: first the description, so that a partial folder is not a snapshot.
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
