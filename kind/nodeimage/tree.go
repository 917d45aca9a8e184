package nodeimage

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// entry is one file, symbolic link or folder of an image, owned by root.
type entry struct {
	path string // absolute inside the image
	// mode has the permissions and, for folders, fs.ModeDir.
	mode fs.FileMode
	link string // target of a symbolic link
	data string // the content, unless source is set
	// source is a file on this machine with the content. Empty means data.
	source string
}

func folder(path string, mode fs.FileMode) entry { return entry{path: path, mode: mode | fs.ModeDir} }
func symlink(path, target string) entry          { return entry{path: path, link: target, mode: 0o777} }
func text(path, data string) entry               { return entry{path: path, data: data, mode: 0o644} }
func executable(path, source string) entry       { return entry{path: path, source: source, mode: 0o755} }

// withParents returns the entries sorted by path, each path once (the last one wins), and adds
// missing parent folders: without them, the engine would choose their mode.
func withParents(entries []entry) []entry {
	all := map[string]entry{}
	for _, e := range entries {
		for dir := path.Dir(e.path); dir != "/"; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = folder(dir, 0o755)
			}
		}
	}
	for _, e := range entries {
		all[e.path] = e
	}
	sorted := make([]entry, 0, len(all))
	for _, e := range all {
		sorted = append(sorted, e)
	}
	slices.SortFunc(sorted, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	return sorted
}

// writeTree writes the entries and their parent folders as a reproducible tar archive.
func writeTree(w io.Writer, entries []entry) error {
	tw := tar.NewWriter(w)
	for _, e := range withParents(entries) {
		if err := e.write(tw); err != nil {
			return fmt.Errorf("adding %s: %w", e.path, err)
		}
	}
	return tw.Close()
}

// writeTreeFile is writeTree to a new file.
func writeTreeFile(name string, entries []entry) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(writeTree(file, entries), file.Close())
}

func (e entry) write(tw *tar.Writer) error {
	header := &tar.Header{Name: e.path[1:], Mode: int64(e.mode.Perm()), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if e.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch {
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		return tw.WriteHeader(header)
	case e.mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		return tw.WriteHeader(header)
	case e.source != "":
		return e.copySource(tw, header)
	}
	header.Typeflag, header.Size = tar.TypeReg, int64(len(e.data))
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.WriteString(tw, e.data)
	return err
}

func (e entry) copySource(tw *tar.Writer, header *tar.Header) (err error) {
	file, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(tw, file)
	return err
}

// treeOf returns the content of the folder dir on this machine as entries below root.
func treeOf(dir, root string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := path.Join(root, filepath.ToSlash(relative))
		switch {
		case target == "/":
		case d.IsDir():
			entries = append(entries, folder(target, info.Mode().Perm()))
		case d.Type().IsRegular():
			entries = append(entries, entry{path: target, source: name, mode: info.Mode().Perm()})
		}
		return nil
	})
	return entries, err
}
