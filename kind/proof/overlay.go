package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Apply returns the source with the bug. It returns an error unless the source has the line exactly
// once: then the code has changed and the bug must be adapted.
func (m Mutant) Apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	at := -1
	for i, line := range lines {
		if strings.TrimSpace(line) != m.Line {
			continue
		}
		if at >= 0 {
			return "", fmt.Errorf("planted bug %s: lines %d and %d of %s are both %q", m.Name, at+1, i+1, m.File, m.Line)
		}
		at = i
	}
	if at < 0 {
		return "", fmt.Errorf("planted bug %s: line %q not found in %s", m.Name, m.Line, m.File)
	}
	indentation := lines[at][:strings.Index(lines[at], m.Line)]
	lines[at] = indentation + m.Replacement
	return strings.Join(lines, "\n"), nil
}

// Overlay writes the file with the bug and the JSON file for `go build -overlay` to the folder, and
// returns the path of the JSON file. root is the root of the repository. The folder may contain
// files of another bug.
func (m Mutant) Overlay(root, folder string) (string, error) {
	original := filepath.Join(root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	planted, err := m.Apply(string(source))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	replacement := filepath.Join(folder, path.Base(m.File))
	if err := file.Replace(replacement, []byte(planted), 0o644); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, file.Replace(overlay, content, 0o644)
}
