package plantedbugs

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

func TestCatalog(t *testing.T) {
	all := All()
	if len(all) < 10 {
		t.Errorf("%d planted bugs, want at least 10", len(all))
	}
	name, seen, known := regexp.MustCompile(`^[a-z][a-z0-9-]*$`), map[string]bool{}, scenarios(t)
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			if !name.MatchString(m.Name) || seen[m.Name] {
				t.Errorf("name %q is invalid or not unique", m.Name)
			}
			seen[m.Name] = true
			if m.Line == m.Replacement || m.Line != strings.TrimSpace(m.Line) || m.Replacement != strings.TrimSpace(m.Replacement) {
				t.Errorf("line %q, replacement %q", m.Line, m.Replacement)
			}
			if m.Bug == "" || m.Words == "" || len(m.Scenarios) == 0 {
				t.Error("Bug, Words or Scenarios is empty")
			}
			for _, scenario := range m.Scenarios {
				if !known[scenario] {
					t.Errorf("unknown scenario %s", scenario)
				}
			}
			if step, _, named := strings.Cut(m.Words, ": "); named && !known[step] {
				t.Errorf("unknown step %q", step)
			}
		})
	}
}

// TestApplies checks that each bug replaces one line of the current code, and that the result
// compiles.
func TestApplies(t *testing.T) {
	t.Parallel()
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			absolute, err := filepath.Abs(root)
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			overlay, err := m.Overlay(absolute, folder)
			if err != nil {
				t.Fatal(err)
			}
			original, err := os.ReadFile(filepath.Join(root, m.File))
			if err != nil {
				t.Fatal(err)
			}
			planted, err := os.ReadFile(filepath.Join(folder, path.Base(m.File)))
			if err != nil {
				t.Fatal(err)
			}
			if differentLines(string(original), string(planted)) != 1 {
				t.Errorf("not exactly one line is different")
			}
			compile(t, m, overlay, planted)
		})
	}
}

// differentLines returns the number of lines that differ.
func differentLines(a, b string) int {
	count, other := 0, strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(other) || other[i] != line {
			count++
		}
	}
	return count
}

func compile(t *testing.T, m Mutant, overlay string, planted []byte) {
	t.Helper()
	cmd := exec.Command("go", "build", "-overlay", overlay, "./"+path.Dir(m.File))
	cmd.Dir = root
	if path.Ext(m.File) == ".sh" {
		cmd = exec.Command("bash", "-n")
		cmd.Stdin = bytes.NewReader(planted)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
