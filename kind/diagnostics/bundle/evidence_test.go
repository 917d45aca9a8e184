package bundle

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// opened records the first path element of each opened file.
type opened struct {
	fs.FS
	names map[string]bool
}

func (o opened) Open(name string) (fs.File, error) {
	first, _, _ := strings.Cut(name, "/")
	o.names[first] = true
	return o.FS.Open(name)
}

// TestEvidence checks that Evidence names everything that Read opens.
func TestEvidence(t *testing.T) {
	files := opened{fstest.MapFS{}, map[string]bool{}}
	Read(files, at)
	for name := range files.names {
		if !slices.Contains(Evidence(), name) {
			t.Errorf("%s is read but not in Evidence, so it would remain from an earlier bundle", name)
		}
	}
	if len(files.names) < 5 {
		t.Errorf("only %d files and folders were opened", len(files.names))
	}
}
