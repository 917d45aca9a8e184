package registrycache_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ignored are the folders that hold nothing of ours: what a run fetches, builds or leaves behind (see .gitignore).
var ignored = []string{".git", ".testbed", "_artifacts", "bin"}

// file is one text file of the repository; ast is set for Go files outside testdata.
type file struct {
	path, text string
	foreign    bool // part of another module of this repository
	ast        *ast.File
	fset       *token.FileSet
}

func (f file) dir() string            { return path.Dir(f.path) }
func (f file) line(pos token.Pos) int { return f.fset.Position(pos).Line }

func (f file) imports() []string {
	var paths []string
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// tree is every text file of the repository, whatever its build tags, in the order of their paths.
type tree []file

// ownGo returns the Go files of the main module.
func (t tree) ownGo() []file {
	return slices.DeleteFunc(slices.Clone(t), func(f file) bool { return f.ast == nil || f.foreign })
}

// packages returns the Go files by folder, in every module.
func (t tree) packages() map[string][]file {
	byDir := map[string][]file{}
	for _, f := range t {
		if f.ast != nil {
			byDir[f.dir()] = append(byDir[f.dir()], f)
		}
	}
	return byDir
}

// load reads the files of a repository and parses those in Go.
func load(root fs.FS) (tree, error) {
	var t tree
	fset := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(ignored, p):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		data, err := fs.ReadFile(root, p)
		if err != nil || bytes.IndexByte(data, 0) >= 0 { // binary
			return err
		}
		f := file{path: p, text: string(data), fset: fset, foreign: inOtherModule(root, path.Dir(p))}
		if path.Ext(p) == ".go" && !slices.Contains(strings.Split(p, "/"), "testdata") {
			if f.ast, err = parser.ParseFile(fset, p, data, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		t = append(t, f)
		return nil
	})
	return t, err
}

// inOtherModule says whether a go.mod lies between the folder and the root.
func inOtherModule(root fs.FS, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(root, path.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}
