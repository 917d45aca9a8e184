package nodeimage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *cache {
	t.Helper()
	c, err := openCache(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close(context.Background()) })
	return c
}

func write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestProduce(t *testing.T) {
	failure := errors.New("disk full")
	tests := []struct {
		name  string
		build func(t *testing.T, path string) error
		err   error
		has   bool
	}{
		{"a file", func(t *testing.T, path string) error { write(t, path, "x"); return nil }, nil, true},
		{"a folder", func(t *testing.T, path string) error { write(t, filepath.Join(path, "a/b"), "x"); return nil }, nil, true},
		{"fails halfway", func(t *testing.T, path string) error { write(t, path, "x"); return failure }, failure, false},
		{"makes nothing", func(*testing.T, string) error { return nil }, os.ErrNotExist, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, t.TempDir())
			err := c.produce("part", func(path string) error {
				if path == c.path("part") {
					t.Error("is built in place: an interrupted build would look complete")
				}
				return tt.build(t, path)
			})
			if !errors.Is(err, tt.err) || c.has("part") != tt.has {
				t.Errorf("error %v, there %t; want %v, %t", err, c.has("part"), tt.err, tt.has)
			}
		})
	}
}

func TestOpenCacheRemovesWhatAKilledBuildLeft(t *testing.T) {
	dir := t.TempDir()
	left, finished := filepath.Join(dir, tempDir, "part/half"), filepath.Join(dir, "whole")
	write(t, left, "x")
	write(t, finished, "x")
	c := open(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
	if !c.has("whole") {
		t.Error("a finished part is gone")
	}
}

func TestOpenCacheWaitsForAnotherBuild(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := openCache(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second build did not wait for the first: %v", err)
	}
	if err := first.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second, err := openCache(t.Context(), dir); err != nil {
		t.Errorf("after the first build's end: %v", err)
	} else if err := second.close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPruneRemovesUnusedParts(t *testing.T) {
	c := open(t, t.TempDir())
	write(t, c.path("used"), "x")
	write(t, c.path("unused/program"), "x")
	old := time.Now().Add(-30 * 24 * time.Hour)
	for _, entry := range []string{"used", "unused", lockFile} {
		if err := os.Chtimes(c.path(entry), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.use("used"); err != nil {
		t.Fatal(err)
	}
	if err := c.prune(time.Now().Add(-keepUnused)); err != nil {
		t.Fatal(err)
	}
	if !c.has("used") || c.has("unused") || !c.has(lockFile) || !c.has(tempDir) {
		t.Errorf("used %t, unused %t, lock %t, temp %t", c.has("used"), c.has("unused"), c.has(lockFile), c.has(tempDir))
	}
}
