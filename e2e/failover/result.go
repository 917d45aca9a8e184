package failover

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Result is one failure as a version of containerd sees it. Times are in seconds.
type Result struct {
	Failure    string `json:"failure"`
	Containerd string `json:"containerd"`
	// Direct and Took are the times of pulls 10 s after the beginning of the failure.
	Direct float64 `json:"direct,omitempty"`
	Took   float64 `json:"took,omitempty"`
	// Midway is the time of a slow pull during which the failure begins, MidwayDirect that of a direct
	// one.
	MidwayDirect float64 `json:"midwayDirect,omitempty"`
	Midway       float64 `json:"midway,omitempty"`
	// Old is the time of a pull as in Took, with the configuration that Gardener writes. A pull that
	// takes too long has OldLimit.
	Old float64 `json:"old,omitempty"`
}

// OldLimit is the time after which a pull with the old configuration is given up.
const OldLimit = 90 * time.Second

// Merge returns the results with later ones added, which replace the times that they have.
func Merge(all []Result, later ...Result) []Result {
	all = slices.Clone(all)
	for _, one := range later {
		at := slices.IndexFunc(all, func(r Result) bool { return r.Failure == one.Failure && r.Containerd == one.Containerd })
		if at < 0 {
			all = append(all, one)
			continue
		}
		if one.Took > 0 {
			all[at].Direct, all[at].Took = one.Direct, one.Took
		}
		if one.Old > 0 {
			all[at].Old = one.Old
		}
		if one.Midway > 0 {
			all[at].MidwayDirect, all[at].Midway = one.MidwayDirect, one.Midway
		}
	}
	return all
}

// Read returns the results in a file, or none if it does not exist.
func Read(path string) (all []Result, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the results of failover: %w", err)
	}
	return all, nil
}

// Record merges results into a file.
func Record(path string, later ...Result) error {
	all, err := Read(path)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(Merge(all, later...), "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err == nil {
		err = os.WriteFile(path, append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record a result of failover: %w", err)
	}
	return nil
}
