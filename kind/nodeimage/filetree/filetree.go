package filetree

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is one file, symbolic link or folder of an image.
type Entry struct {
	Path    string      // the absolute, clean path inside the image
	Mode    fs.FileMode // the permission bits, fs.ModeSticky and, for folders, fs.ModeDir
	Owner   int         // the numeric ID of both the user and the group
	Link    string      // the target of a symbolic link
	Content []byte      // the content of a file whose Source is empty
	Source  string      // the path of a file on this machine, which is read whenever the entry is written
}

// Folder returns the entry of a folder.
func Folder(path string, mode fs.FileMode) Entry { return Entry{Path: path, Mode: mode | fs.ModeDir} }

// Symlink returns the entry of a symbolic link to target.
func Symlink(path, target string) Entry { return Entry{Path: path, Link: target, Mode: 0o777} }

// Text returns the entry of a file with the content data.
func Text(path, data string) Entry { return Entry{Path: path, Content: []byte(data), Mode: 0o644} }

// Executable returns the entry of a program, whose content is in the file source on this machine.
func Executable(path, source string) Entry { return Entry{Path: path, Source: source, Mode: 0o755} }

// withParents returns the entries sorted by path, each path once (the last one wins), and adds
// missing parent folders, whose mode the engine would otherwise choose.
func withParents(entries []Entry) []Entry {
	all := map[string]Entry{}
	for _, e := range entries {
		for dir := path.Dir(e.Path); len(dir) > 1; dir = path.Dir(dir) {
			all[dir] = Folder(dir, 0o755)
		}
	}
	for _, e := range entries {
		all[e.Path] = e
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
}

// Write writes the entries and their parent folders as a tar archive, sorted by path. If a path
// occurs more than once, the last entry wins.
func Write(w io.Writer, entries []Entry) error {
	tw := tar.NewWriter(w)
	for _, e := range withParents(entries) {
		if err := e.write(tw); err != nil {
			return fmt.Errorf("adding %s: %w", e.Path, err)
		}
	}
	return tw.Close()
}

// WriteFile writes the archive to a new file (see Write).
func WriteFile(name string, entries []Entry) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(Write(file, entries), file.Close())
}

func (e Entry) write(tw *tar.Writer) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(e.Path, "/"), Mode: int64(e.Mode.Perm()), Uid: e.Owner, Gid: e.Owner,
		Size: int64(len(e.Content)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}
	var content io.Reader = bytes.NewReader(e.Content)
	if e.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch {
	case e.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.Link
	case e.Mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case e.Source != "":
		file, err := os.Open(e.Source)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		content, header.Size = file, info.Size()
	}
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(tw, content)
	return err
}

// Of returns the folders and files in the folder dir on this machine as entries below root.
func Of(dir, root string) ([]Entry, error) {
	var entries []Entry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := path.Join(root, name)
		switch {
		case target == "/":
		case d.IsDir():
			entries = append(entries, Folder(target, info.Mode().Perm()))
		case d.Type().IsRegular():
			entries = append(entries, Entry{Path: target, Source: filepath.Join(dir, name), Mode: info.Mode().Perm()})
		}
		return nil
	})
	return entries, err
}
