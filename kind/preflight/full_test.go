package preflight

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"
)

func TestFindFull(t *testing.T) {
	folder := t.TempDir()
	if full := FindFull(folder, folder+"/not/there/yet"); full != nil {
		t.Errorf("a disk with room: %v", full)
	}
}

func TestFullTellsWhatHelps(t *testing.T) {
	for past, want := range map[bool]string{
		false: "the disk is full: 3.5 MiB are left at /var/lib/docker; free some space and run it again",
		true: "the disk was full: no space was left on a device, and 3.5 MiB are left at /var/lib/docker now; " +
			"free some space (df, df -i) and run it again",
	} {
		if got := (&Full{Space{"/var/lib/docker", 7 << 19}, past}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestWasFull: only an error about missing space returns a Full, with the file system that has the
// least space.
func TestWasFull(t *testing.T) {
	folder := t.TempDir()
	noSpace := errors.New("docker run: exit status 125: write /var/lib/docker/x: no space left on device")
	for name, tc := range map[string]struct {
		err         error
		directories []string
		want        bool
	}{
		"no space":                 {noSpace, []string{folder, folder + "/not/there"}, true},
		"a call that had no space": {fmt.Errorf("write: %w", syscall.ENOSPC), []string{folder}, true},
		"something else":           {errors.New("no such image"), []string{folder}, false},
		"a program of the shell":   {errors.New("cp: error writing 'x': No space left on device"), []string{folder}, true},
		"no inotify watch":         {errors.New("inotify_add_watch: no space left on device"), []string{folder}, false},
		"no cgroup":                {errors.New("mkdir /sys/fs/cgroup/x: no space left on device"), []string{folder}, false},
		"nowhere to look":          {noSpace, nil, false},
		"no error":                 {nil, []string{folder}, false},
	} {
		t.Run(name, func(t *testing.T) {
			full := WasFull(tc.err, tc.directories...)
			if (full != nil) != tc.want || full != nil && (full.Directory != folder || full.Bytes == 0 || !full.Earlier) {
				t.Errorf("%+v, want one: %t", full, tc.want)
			}
		})
	}
}

func TestAwaitFullEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if full := AwaitFull(ctx, t.TempDir()); full != nil {
		t.Errorf("a disk with room: %v", full)
	}
}
