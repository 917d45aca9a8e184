package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/bench/cache"
)

// Names of the files of a report below docs.
const (
	Page = "benchmarks.md"
	JSON = "benchmarks/cache.json"
)

// Read reads the JSON of an earlier run, and judges its goals again.
func Read(file string) (r cache.Report, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("reading a report: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("report %s is no output of --json: %w", file, err)
	}
	if len(r.Rows) == 0 {
		return r, fmt.Errorf("report %s has no rows", file)
	}
	r.Goals = cache.Judge(r.Rows, r.Machine.SHA256PerGB)
	return r, nil
}

// Write writes all files of a report below the folder.
func Write(folder string, r cache.Report) error {
	files, err := Files(r)
	if err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644)); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

// Files renders all files of a report by name below docs.
func Files(r cache.Report) (map[string][]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the report: %w", err)
	}
	files := map[string][]byte{JSON: append(text, '\n'), Page: []byte(introduction + Markdown(r) + images())}
	for _, p := range plots {
		if files["images/"+p.file], err = p.draw(r.Rows); err != nil {
			return nil, fmt.Errorf("plot %s: %w", p.file, err)
		}
	}
	return files, nil
}

// images is the part of the page that shows the plots.
func images() string {
	text := "\n## Plots\n"
	for _, p := range plots {
		text += fmt.Sprintf("\n![%s](images/%s)\n", p.title, p.file)
	}
	return text
}
