package snapshot

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// version is the version of the format of descriptions.
const version = 1

// Snapshot describes a snapshot.
type Snapshot struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Volumes are sorted by claim.
	Volumes []Volume `json:"volumes"`
}

// Volume describes the archive of one volume.
type Volume struct {
	// Claim is the name of the PersistentVolumeClaim, Upstream the upstream of the cache.
	Claim    string `json:"claim"`
	Upstream string `json:"upstream"`
	// Bytes is the size of the archive, SHA256 its digest.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// archive returns the file name of the archive. The name of a claim cannot have a slash.
func (v Volume) archive() string { return v.Claim + ".tar" }

// Bytes returns the size of all archives.
func (s *Snapshot) Bytes() int64 {
	var sum int64
	for _, volume := range s.Volumes {
		sum += volume.Bytes
	}
	return sum
}

// UnknownError is the error for a snapshot that does not exist. Names are those of all snapshots.
type UnknownError struct {
	Name  string
	Names []string
}

func (e *UnknownError) Error() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("snapshot %s not found: there are no snapshots, create one by `testbed snapshot save`", e.Name)
	}
	return fmt.Sprintf("snapshot %s not found, use one of %s", e.Name, strings.Join(e.Names, ", "))
}

// UsageError marks the error for internal/program: exit code 2.
func (*UnknownError) UsageError() {}

// ExistsError is the error for a name in use.
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

// Missing returns the claims of the snapshot that are not in claims.
func (s *Snapshot) Missing(claims []string) []string {
	var missing []string
	for _, volume := range s.Volumes {
		if !slices.Contains(claims, volume.Claim) {
			missing = append(missing, volume.Claim)
		}
	}
	return missing
}
