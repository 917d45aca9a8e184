package bringup

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// TestRunUntilDiskFull uses sysfs as a disk, which never has free space.
func TestRunUntilDiskFull(t *testing.T) {
	const folder = "/sys"
	failed := errors.New("no space for a cluster")
	for _, tc := range []struct {
		name string
		part func(context.Context) error
		want error // joined with a *Full; nil for no error
	}{
		{"waits", func(ctx context.Context) error {
			<-ctx.Done()
			if full := new(Full); !errors.As(context.Cause(ctx), &full) {
				t.Errorf("canceled because of %v", context.Cause(ctx))
			}
			return ctx.Err()
		}, context.Canceled},
		{"fails", func(context.Context) error { return failed }, failed},
		{"succeeds", func(context.Context) error { return nil }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := runUntilDiskFull(t.Context(), []string{folder}, tc.part)
			var full *Full
			if found := errors.As(err, &full); found != (tc.want != nil) || !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v joined with the full disk", err, tc.want)
			}
			if full != nil && (full.directory != folder || !strings.Contains(err.Error(), "the disk is full: 0.0 MiB are left at "+folder)) {
				t.Errorf("the error is %q", err)
			}
			if err := explainFullDisk(failed, folder); !errors.As(err, &full) || !errors.Is(err, failed) {
				t.Errorf("explainFullDisk: %v", err)
			}
		})
	}
}

func TestExplainFullDisk(t *testing.T) {
	free, failed := t.TempDir(), errors.New("dockerd exited")
	if err := explainFullDisk(nil, free); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := explainFullDisk(failed, free); err != failed { //nolint:errorlint // it must be unchanged
		t.Errorf("with free space: %v", err)
	}
}

func TestRunWithFreeSpace(t *testing.T) {
	failed := errors.New("something else")
	err := runUntilDiskFull(t.Context(), []string{t.TempDir()}, func(context.Context) error { return failed })
	if full := new(Full); errors.As(err, &full) || !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

func TestWrittenFolders(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	for _, tc := range []struct {
		name   string
		engine *engine.Engine
		want   []string
	}{
		{"a local engine", &engine.Engine{Local: true, DataRoot: "/data"}, []string{"/repository", "/cache", "/data"}},
		{"a remote engine", &engine.Engine{DataRoot: "/data"}, []string{"/repository", "/cache"}},
		{"no engine", nil, []string{"/repository", "/cache"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := writtenFolders(tc.engine, kind.State(filepath.Join("/repository", "prefix")))
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %+v, want %v", got, tc.want)
			}
		})
	}
}
