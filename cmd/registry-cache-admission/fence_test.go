package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fence = regexp.MustCompile("(?ms)^```ya?ml\n(.*?)^```")

// examples returns the YAML files of examples/ and the fenced YAML of all documentation, by
// location.
func examples(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(path string) error {
		content, err := os.ReadFile(path)
		switch {
		case filepath.Ext(path) == ".yaml":
			found[path] = string(content)
		case filepath.Ext(path) == ".md":
			for _, match := range fence.FindAllSubmatchIndex(content, -1) {
				line := 1 + strings.Count(string(content[:match[0]]), "\n")
				found[fmt.Sprintf("%s:%d", path, line)] = string(content[match[2]:match[3]])
			}
		}
		return err
	}
	for _, folder := range []string{"../../examples", "../../docs"} {
		if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			return add(path)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("../../README.md"); err != nil {
		t.Fatal(err)
	}
	return found
}
