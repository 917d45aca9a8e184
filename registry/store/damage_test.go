package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

func newTestStore(t *testing.T) *Store {
	t.Helper()
	s, err := New(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestDamagedTag checks that Contents removes a tag that is empty after a crash, and keeps one that
// the disk cannot read.
func TestDamagedTag(t *testing.T) {
	good := digest.FromString("manifest")
	for name, test := range map[string]struct {
		damage         func(file string) error
		listed, stored bool
		fails          bool
	}{
		"undamaged":  {func(string) error { return nil }, true, true, false},
		"empty":      {func(file string) error { return os.Truncate(file, 0) }, false, false, false},
		"half":       {func(file string) error { return os.Truncate(file, 20) }, false, false, false},
		"not hex":    {func(file string) error { return os.WriteFile(file, []byte("sha256:"+good.Encoded()[1:]+"g"), 0o600) }, false, false, false},
		"unreadable": {func(file string) error { return errors.Join(os.Remove(file), os.Symlink(".", file)) }, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestStore(t)
			tag, other := TagName{"library/app", "v1"}, TagName{"library/app", "v2"}
			for _, name := range []TagName{tag, other} {
				if err := s.SetTag(name, good, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			if err := test.damage(filepath.Join(s.root.Name(), currentFile(tag))); err != nil {
				t.Fatal(err)
			}
			found, err := s.Contents(t.Context())
			if (err != nil) != test.fails {
				t.Error(err)
			}
			if _, listed := found.Tags[tag]; listed != test.listed {
				t.Errorf("the tag is listed: %t", listed)
			}
			if _, err := s.root.Lstat(tagDir(tag)); (err == nil) != test.stored {
				t.Errorf("the folder of the tag: %v", err)
			}
			if found.Tags[other].To != good {
				t.Errorf("the other tag refers to %q", found.Tags[other].To)
			}
		})
	}
}

// TestCheck checks that a damaged blob is removed, and that one that the disk cannot read stays: it
// may be undamaged.
func TestCheck(t *testing.T) {
	content := []byte("content of a blob")
	blob := digest.FromBytes(content)
	for name, test := range map[string]struct {
		stored          string
		flag            int
		stays, passes   bool
		wantIsNotStored bool
	}{
		"undamaged":  {"content of a blob", os.O_RDONLY, true, true, false},
		"other":      {"Content of a blob", os.O_RDONLY, false, false, true},
		"short":      {"content", os.O_RDONLY, false, false, true},
		"empty":      {"", os.O_RDONLY, false, false, true},
		"unreadable": {"content of a blob", os.O_WRONLY, true, false, false}, // reads fail
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestStore(t)
			if err := errors.Join(s.Write(blob, content), s.root.WriteFile(blobFile(blob), []byte(test.stored), 0o600)); err != nil {
				t.Fatal(err)
			}
			s.Distrust(blob)
			file, err := s.root.OpenFile(blobFile(blob), test.flag, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			if err = s.Check(blob, file); (err == nil) != test.passes || errors.Is(err, ErrNotStored) != test.wantIsNotStored {
				t.Errorf("Check: %v", err)
			}
			opened, err := s.Open(blob)
			if (err == nil) != test.stays || !test.stays && !errors.Is(err, ErrNotStored) {
				t.Fatalf("Open: %v", err)
			}
			if err == nil {
				_ = opened.Close()
				if opened.Checked != test.passes {
					t.Errorf("the blob counts as checked: %t", opened.Checked)
				}
			} else if _, err := s.root.Stat(blobDir(blob)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder of the blob was not removed: %v", err)
			}
		})
	}
}

// TestCheckOfReplacedFile checks that the check of a damaged file does not remove the one that has
// replaced it.
func TestCheckOfReplacedFile(t *testing.T) {
	s := newTestStore(t)
	content := []byte("content")
	blob := digest.FromBytes(content)
	if err := s.write(blobFile(blob), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	file, err := s.Open(blob)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := s.Write(blob, content); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(blob, file.File); !errors.Is(err, ErrNotStored) {
		t.Errorf("Check: %v", err)
	}
	again, err := s.Open(blob)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if !again.Checked {
		t.Error("the new file counts as not checked")
	}
}
