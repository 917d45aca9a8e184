// Package measured records times that scenarios measure, and renders docs/failover.md and
// docs/registries.md from them.
package measured

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// result is one entry of a file. addTo returns the entries with it, in place of an earlier one.
type result[R any] interface{ addTo(all []R) []R }

// Read returns the results in a file, or none if it does not exist.
func Read[R any](path string) (all []R, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the results in %s: %w", path, err)
	}
	return all, nil
}

// Record adds results to those in a file.
func Record[R result[R]](path string, later ...R) error {
	all, err := Read[R](path)
	if err != nil {
		return err
	}
	for _, one := range later {
		all = one.addTo(all)
	}
	content, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err == nil {
		err = os.WriteFile(path, append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record results in %s: %w", path, err)
	}
	return nil
}

// first returns the first entry that matches, or an empty one.
func first[R any](all []R, match func(R) bool) (found R) {
	if i := slices.IndexFunc(all, match); i >= 0 {
		found = all[i]
	}
	return found
}

// seconds formats the time of a pull. 0 was not measured, and from OldLimit on it was given up.
func seconds(s float64, unit string) string {
	switch {
	case s == 0:
		return "not measured"
	case s >= OldLimit.Seconds():
		return fmt.Sprintf("more than %.0f s", OldLimit.Seconds())
	}
	return fmt.Sprintf("%.2f%s", s, unit)
}
