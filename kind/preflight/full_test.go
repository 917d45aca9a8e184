package preflight

import (
	"context"
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
	want := "the disk is full: 3.5 MiB are left at /var/lib/docker; free some space and run it again"
	if got := (&Full{Space{"/var/lib/docker", 7 << 19}}).Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAwaitFullEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if full := AwaitFull(ctx, t.TempDir()); full != nil {
		t.Errorf("a disk with room: %v", full)
	}
}
