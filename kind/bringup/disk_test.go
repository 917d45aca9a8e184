package bringup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/fulldisk"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

// TestWatchedOnFullDisk is about parts that wait for what cannot come, fail by themselves, and succeed. It runs itself where it has a
// full disk of its own.
func TestWatchedOnFullDisk(t *testing.T) {
	folder := fulldisk.Folder()
	if folder == "" {
		fulldisk.Run(t)
		return
	}
	failed := errors.New("no room for a cluster")
	for _, tc := range []struct {
		name string
		part func(context.Context) error
		want error // beside the full disk; nil: no error at all
	}{
		{"waits", func(ctx context.Context) error {
			<-ctx.Done()
			if full := new(preflight.Full); !errors.As(context.Cause(ctx), &full) {
				t.Errorf("it is ended for %v", context.Cause(ctx))
			}
			return ctx.Err()
		}, context.Canceled},
		{"fails", func(context.Context) error { return failed }, failed},
		{"succeeds", func(context.Context) error { return nil }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := watched(t.Context(), disks{directories: []string{folder}}, tc.part)
			var full *preflight.Full
			if said := errors.As(err, &full); said != (tc.want != nil) || !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want that of %v, and that the disk is full", err, tc.want)
			}
			if full != nil && (full.Directory != folder || !strings.Contains(err.Error(), "the disk is full: 0.0 MiB are left at "+folder)) {
				t.Errorf("the error is %q", err)
			}
			if err := explained(failed, disks{directories: []string{folder}}); !errors.As(err, &full) || !errors.Is(err, failed) {
				t.Errorf("explained: %v", err)
			}
		})
	}
}

func TestExplained(t *testing.T) {
	room, failed := disks{directories: []string{t.TempDir()}}, errors.New("dockerd exited")
	if err := explained(nil, room); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := explained(failed, room); err != failed { //nolint:errorlint // it stays as it is
		t.Errorf("with room: %v", err)
	}
	noSpace := fmt.Errorf("docker run: %w", syscall.ENOSPC)
	if full := new(preflight.Full); !errors.As(explained(noSpace, room), &full) || !full.Earlier || !errors.Is(explained(noSpace, room), noSpace) {
		t.Errorf("room was given back: %v", explained(noSpace, room))
	}
	room.elsewhere = true
	if err := explained(noSpace, room); err != noSpace { //nolint:errorlint // it stays as it is
		t.Errorf("a disk here is blamed for one elsewhere: %v", err)
	}
}

func TestWatchedWithRoom(t *testing.T) {
	failed := errors.New("something else")
	err := watched(t.Context(), disks{directories: []string{t.TempDir()}}, func(context.Context) error { return failed })
	if full := new(preflight.Full); errors.As(err, &full) || !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

func TestDisks(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	for _, tc := range []struct {
		name   string
		engine *engine.Engine
		want   []string
	}{
		{"an engine here", &engine.Engine{Local: true, DataRoot: "/data"}, []string{"/repository", "/cache", "/data"}},
		{"an engine elsewhere", &engine.Engine{DataRoot: "/data"}, []string{"/repository", "/cache"}},
		{"no engine", nil, []string{"/repository", "/cache"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := disksOf(tc.engine, kind.State(filepath.Join("/repository", "prefix")))
			if !slices.Equal(got.directories, tc.want) || got.elsewhere != (tc.engine != nil && !tc.engine.Local) {
				t.Errorf("got %+v, want %v", got, tc.want)
			}
		})
	}
}
