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

// Apply returns the source with the bug in it. It is an error if the line is not in it, or more than once: the code has
// changed, and the bug has to follow.
func (m Mutant) Apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	at := -1
	for i, line := range lines {
		if strings.TrimSpace(line) != m.Line {
			continue
		}
		if at >= 0 {
			return "", fmt.Errorf("planted bug %s: line %d of %s is like line %d: %s", m.Name, i+1, m.File, at+1, m.Line)
		}
		at = i
	}
	if at < 0 {
		return "", fmt.Errorf("planted bug %s: %s has no line %q any more", m.Name, m.File, m.Line)
	}
	indentation := lines[at][:strings.Index(lines[at], m.Line)]
	lines[at] = indentation + m.Replacement
	return strings.Join(lines, "\n"), nil
}

// Overlay writes the file with the bug into the folder, and beside it what `go build -overlay` reads, whose path it returns: the
// compiler then sees the one in place of the other. root is the root of the repository. What an earlier bug left in the folder
// does no harm.
func (m Mutant) Overlay(root, folder string) (string, error) {
	original := filepath.Join(root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	wrong, err := m.Apply(string(source))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	replacement := filepath.Join(folder, path.Base(m.File))
	if err := file.Replace(replacement, []byte(wrong), 0o644); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", fmt.Errorf("planted bug %s: %w", m.Name, err)
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, file.Replace(overlay, content, 0o644)
}
