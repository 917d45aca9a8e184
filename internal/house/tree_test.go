package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ignored lists paths that no rule checks: .git, and the output of downloads, builds and tests.
var ignored = []string{".git", ".testbed", "_artifacts", "bin"}

// file is a file of the repository. ast is set for Go files outside of testdata.
type file struct {
	path, text string
	nested     bool // in another Go module of this repository
	ast        *ast.File
}

func (f file) dir() string { return path.Dir(f.path) }

// tree contains every file of the repository, whatever its build tags, sorted by path. The text of
// a binary file is empty.
type tree []file

// goFiles returns the Go files of the main module.
func (t tree) goFiles() []file {
	return slices.DeleteFunc(slices.Clone(t), func(f file) bool { return f.ast == nil || f.nested })
}

// packages returns the Go files of all modules by folder.
func (t tree) packages() map[string][]file {
	byDir := map[string][]file{}
	for _, f := range t {
		if f.ast != nil {
			byDir[f.dir()] = append(byDir[f.dir()], f)
		}
	}
	return byDir
}

// root returns the root of the repository, which is two folders above this package.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+module+"\n") {
		t.Fatalf("%s is not the root of the repository: %v", dir, err)
	}
	return dir
}

// load reads the files of a repository and parses the Go files.
func load(root fs.FS) (tree, error) {
	var t tree
	err := fs.WalkDir(root, ".", func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(ignored, p) && entry.IsDir():
			return fs.SkipDir
		case slices.Contains(ignored, p) || !entry.Type().IsRegular(): // .git of a worktree is a file
			return nil
		}
		data, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		if bytes.IndexByte(data, 0) >= 0 { // binary: only its path counts, as the target of links
			data = nil
		}
		f := file{path: p, text: string(data), nested: inOtherModule(root, path.Dir(p))}
		if path.Ext(p) == ".go" && !slices.Contains(strings.Split(p, "/"), "testdata") {
			if f.ast, err = parser.ParseFile(token.NewFileSet(), p, data, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		t = append(t, f)
		return nil
	})
	return t, err
}

// inOtherModule reports whether the folder, or a folder between it and the root, contains a go.mod.
func inOtherModule(root fs.FS, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(root, path.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}
