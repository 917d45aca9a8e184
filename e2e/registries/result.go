package registries

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

// Result has the seconds of pulls through a cache whose upstream has the profile. A time of 0 was
// not measured.
type Result struct {
	Registry   string `json:"registry"`
	Containerd string `json:"containerd"`
	// Cold is a pull of what the cache does not have, Warm one of what it has.
	Cold float64 `json:"cold,omitempty"`
	Warm float64 `json:"warm,omitempty"`
	// Renewed is a pull of new content after the upstream has dropped all tokens.
	Renewed float64 `json:"renewed,omitempty"`
	// Outage is a pull of what the cache has while the upstream is away.
	Outage float64 `json:"outage,omitempty"`
}

// Merge returns the results with later ones in place of those of the same registries, sorted.
func Merge(all []Result, later ...Result) []Result {
	merged := slices.Clone(all)
	for _, one := range later {
		merged = slices.DeleteFunc(merged, func(r Result) bool { return r.Registry == one.Registry })
		merged = append(merged, one)
	}
	slices.SortFunc(merged, func(a, b Result) int { return strings.Compare(a.Registry, b.Registry) })
	return merged
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
		return nil, fmt.Errorf("read the results of registries: %w", err)
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
		return fmt.Errorf("record a result of registries: %w", err)
	}
	return nil
}
