package snapshot

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// version is that of the format of a description.
const version = 1

// Snapshot describes what was saved.
type Snapshot struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Volumes are ordered by claim.
	Volumes []Volume `json:"volumes"`
}

// Volume is the content of one volume.
type Volume struct {
	// Claim is the name of the volume's claim, Upstream what the cache fetches from.
	Claim    string `json:"claim"`
	Upstream string `json:"upstream"`
	// Bytes and SHA256 are those of the archive.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// archive is the name of the volume's file. Names of claims are those of Kubernetes: they hold no slash.
func (v Volume) archive() string { return v.Claim + ".tar" }

// Bytes is the size of all volumes.
func (s *Snapshot) Bytes() int64 {
	var sum int64
	for _, volume := range s.Volumes {
		sum += volume.Bytes
	}
	return sum
}

// UnknownError says that there is no snapshot of that name.
type UnknownError struct {
	// Name is the one that was asked for, Names are those that there are.
	Name  string
	Names []string
}

// Error lists the names.
func (e *UnknownError) Error() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("there is no snapshot %s, nor any other: `testbed snapshot save` makes one", e.Name)
	}
	return fmt.Sprintf("there is no snapshot %s, only %s", e.Name, strings.Join(e.Names, ", "))
}

// UsageError marks the error for internal/program: exit code 2.
func (*UnknownError) UsageError() {}

// ExistsError says that there is a snapshot of that name already.
type ExistsError struct{ Name string }

// Error says what to do.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("there is a snapshot %s already: take another name, or `testbed snapshot delete %s` first", e.Name, e.Name)
}

// UsageError marks the error for internal/program: exit code 2.
func (*ExistsError) UsageError() {}

// NameError says that a name cannot be one of a snapshot.
type NameError struct{ Name string }

// Error says what a name looks like.
func (e *NameError) Error() string {
	return fmt.Sprintf("snapshot %q: a name is 1 to 40 lower case letters, digits, and - or . between them", e.Name)
}

// UsageError marks the error for internal/program: exit code 2.
func (*NameError) UsageError() {}

var validName = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,38}[a-z0-9])?$`)

// CheckName returns a *NameError for what cannot be a name.
func CheckName(name string) error {
	if !validName.MatchString(name) || strings.Contains(name, "..") {
		return &NameError{name}
	}
	return nil
}

// Missing returns the claims of the snapshot that are not among those that there are.
func (s *Snapshot) Missing(claims []string) []string {
	var missing []string
	for _, volume := range s.Volumes {
		if !slices.Contains(claims, volume.Claim) {
			missing = append(missing, volume.Claim)
		}
	}
	return missing
}
