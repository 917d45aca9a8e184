package fieldbugs

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// measured.json contains the last result of each bug on real clusters.
//
//go:embed measured.json
var measured []byte

// Measured returns the results in docs/field-bugs.md.
func Measured() ([]Result, error) { return decode("measured.json", measured) }

func decode(name string, content []byte) ([]Result, error) {
	var results []Result
	if err := json.Unmarshal(content, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return results, nil
}

// Record writes the result into the file, and replaces the previous result of the same bug.
func Record(path string, result *Result) error {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the results of field bugs: %w", err)
	}
	var results []Result
	if len(content) > 0 {
		if results, err = decode(path, content); err != nil {
			return err
		}
	}
	content, err = json.MarshalIndent(Merge(results, *result), "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results of field bugs: %w", err)
	}
	return file.Replace(path, append(content, '\n'), 0o644)
}

// Merge returns the last result of each bug, in the order of All. A later result replaces an
// earlier one. Results of bugs that do not exist are dropped.
func Merge(results []Result, later ...Result) []Result {
	merged := []Result{}
	for _, bug := range All() {
		for _, candidates := range [][]Result{later, results} {
			if i := slices.IndexFunc(candidates, func(r Result) bool { return r.ID == bug.ID }); i >= 0 {
				merged = append(merged, candidates[i])
				break
			}
		}
	}
	return merged
}
