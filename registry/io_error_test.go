package registry

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"k8s.io/apimachinery/pkg/util/wait"
)

// failingDisk is a file system over a folder. Reads and writes can fail with EIO. Opening works:
// the kernel has cached what it needs.
type failingDisk struct {
	fuse.RawFileSystem
	noReads, noWrites atomic.Bool
	good              atomic.Uint64 // the bytes of each file that can still be read, but slowly
}

// mountFailingDisk mounts a disk that works at first.
func mountFailingDisk(t *testing.T) (*failingDisk, string) {
	t.Helper()
	below, err := fs.NewLoopbackRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	short := time.Millisecond // so that the kernel asks the disk again
	disk := &failingDisk{RawFileSystem: fs.NewNodeFS(below, &fs.Options{EntryTimeout: &short, AttrTimeout: &short})}
	volume := t.TempDir()
	options := &fuse.MountOptions{DirectMountStrict: true, DisabledCapabilities: fuse.CAP_PASSTHROUGH} // all reads use disk
	server, err := fuse.NewServer(disk, volume, options)
	if err != nil {
		t.Skipf("a failing disk needs privileges and FUSE: %v", err)
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a check may still read a blob
		err := wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, 20*time.Second, true,
			func(context.Context) (bool, error) { return server.Unmount() == nil, nil })
		if err != nil {
			t.Errorf("not within 20 s: %s is unmounted", volume)
		}
	})
	return disk, volume
}

func unless(fails *atomic.Bool, do func() fuse.Status) fuse.Status {
	if fails.Load() {
		return fuse.EIO
	}
	return do()
}

// Create implements fuse.RawFileSystem.
func (d *failingDisk) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return unless(&d.noWrites, func() fuse.Status { return d.RawFileSystem.Create(cancel, in, name, out) })
}

// Mkdir implements fuse.RawFileSystem.
func (d *failingDisk) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return unless(&d.noWrites, func() fuse.Status { return d.RawFileSystem.Mkdir(cancel, in, name, out) })
}

// Read implements fuse.RawFileSystem.
func (d *failingDisk) Read(cancel <-chan struct{}, in *fuse.ReadIn, to []byte) (r fuse.ReadResult, s fuse.Status) {
	if in.Offset+uint64(len(to)) <= d.good.Load() {
		<-time.After(4 * time.Millisecond) // the disk is slow
		return d.RawFileSystem.Read(cancel, in, to)
	}
	s = unless(&d.noReads, func() (s fuse.Status) { r, s = d.RawFileSystem.Read(cancel, in, to); return s })
	return r, s
}

// Write implements fuse.RawFileSystem.
func (d *failingDisk) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (n uint32, s fuse.Status) {
	s = unless(&d.noWrites, func() (s fuse.Status) { n, s = d.RawFileSystem.Write(cancel, in, data); return s })
	return n, s
}

// Fsync implements fuse.RawFileSystem.
func (d *failingDisk) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return unless(&d.noWrites, func() fuse.Status { return d.RawFileSystem.Fsync(cancel, in) })
}

// Rename implements fuse.RawFileSystem.
func (d *failingDisk) Rename(cancel <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	return unless(&d.noWrites, func() fuse.Status { return d.RawFileSystem.Rename(cancel, in, from, to) })
}

// Unlink implements fuse.RawFileSystem.
func (d *failingDisk) Unlink(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return unless(&d.noWrites, func() fuse.Status { return d.RawFileSystem.Unlink(cancel, in, name) })
}

// TestFailingDisk does the same as TestUnusableVolume with a disk that fails with EIO.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after         time.Duration
		reads, writes bool
	}{
		"fails":                 {0, true, true},
		"fails during the pull": {20 * time.Millisecond, true, true},
		"cannot be read":        {20 * time.Millisecond, true, false},
		"cannot be written":     {20 * time.Millisecond, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, volume := mountFailingDisk(t)
			useUnusable(t, volume, func(*testing.T, string) func() {
				failing := time.AfterFunc(test.after, func() {
					disk.noReads.Store(test.reads)
					disk.noWrites.Store(test.writes)
				})
				return func() { failing.Stop(); disk.noReads.Store(false); disk.noWrites.Store(false) }
			})
		})
	}
}

// TestBadSector checks that a blob is fetched again if the disk cannot read its end, even if its
// check takes longer than a client waits.
func TestBadSector(t *testing.T) {
	t.Parallel()
	disk, volume := mountFailingDisk(t)
	u := newTestUpstream(t, false)
	content := make([]byte, 64<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	blob := u.pushBlob(t, content)
	cache := newTestServer(t, u, volume)
	await(t, "the blob is stored", func() bool {
		if err := pullBlob(t, blob, u.URL, cache.URL); err != nil {
			t.Fatal(err)
		}
		return cache.stored(t) == 1
	})
	disk.good.Store(48 << 20)
	disk.noReads.Store(true)
	for range 2 {
		if err := pullBlob(t, blob, u.URL, cache.URL); err != nil {
			t.Error(err)
		}
	}
}
