package registry_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/registry"
)

const repositories = "docker/registry/v2/repositories"

// files lists the files and folders below a folder of a volume.
func files(volume, folder string) (found []string) {
	_ = filepath.WalkDir(filepath.Join(volume, folder), func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			found = append(found, path)
		}
		return nil // removed during the walk
	})
	return found
}

// tmpfs mounts a new file system.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("registry-test", folder, "tmpfs", 0, options); err != nil {
		t.Skipf("a small volume needs privileges: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// TestClockBefore: the upstream is asked for a tag whose stored confirmation is in the future, from
// another clock.
func TestClockBefore(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o, volume := newOrigin(t), t.TempDir()
		o.push("v1", 1000)
		p := start(t, o.URL, volume)
		get(t, p.tag("v1"))
		link := filepath.Join(volume, repositories, app, "_manifests/tags/v1/current/link")
		await(t, "the tag is stored", func() bool { _, err := os.Stat(link); return err == nil })
		p.stop()
		future := time.Now().Add(time.Hour)
		if err := os.Chtimes(link, future, future); err != nil {
			t.Fatal(err)
		}
		moved := o.push("v1", 1000)
		before := o.requests("")
		p = start(t, o.URL, volume)
		if a := get(t, p.tag("v1")); a.digest() != moved.manifest.String() {
			t.Errorf("%s, digest %s, want %s; the upstream was asked %d times", a, a.digest(), moved.manifest, o.requests("")-before)
		}
	})
}

// TestInventedRepositories: requests for stored content in invented repositories write nothing to
// the volume.
func TestInventedRepositories(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		pushed := o.push("v1", 1000)
		p := start(t, o.URL, t.TempDir())
		for _, url := range []string{p.tag("v1"), p.blob(pushed.layer.String())} {
			if a := get(t, url); a.status != 200 {
				t.Fatalf("before: %s", a)
			}
		}
		await(t, "the image is stored with its links", func() bool {
			links := strings.Join(files(p.volume, repositories), "\n")
			return p.has(pushed.manifest) && p.has(pushed.layer) &&
				strings.Contains(links, pushed.layer.Encoded()+"/link") && strings.Contains(links, "/current/link")
		})
		before := files(p.volume, ".")
		for i := range 20 {
			invented := fmt.Sprintf("%s/v2/x%d/%sz", p.url, i, strings.Repeat("a/", 50))
			for _, path := range []string{"/blobs/" + pushed.layer.String(), "/manifests/" + pushed.manifest.String()} {
				head(t, invented+path)
				get(t, invented+path)
			}
		}
		if within(t, time.Second, func() bool { return len(files(p.volume, ".")) > len(before)+2 }) {
			t.Errorf("80 requests in repositories that do not exist: %d files and folders, %d before", len(files(p.volume, ".")), len(before))
		}
	})
}

// TestLimitBelowVolume: the limit holds on a larger file system, and the reserve is a percentage of
// the limit, not of the file system.
func TestLimitBelowVolume(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		const limit, size = 1 << 20, 150 << 10
		volume := tmpfs(t, "size=60m")
		if err := os.WriteFile(filepath.Join(volume, "of-others"), make([]byte, 58<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		o := newOrigin(t)
		p := start(t, o.URL, volume, withLimit(limit))
		for i := range 12 {
			content := noise(size)
			blob := o.pushBlob(app, content)
			if a := get(t, p.blob(blob.String())); !a.is(content) {
				t.Errorf("blob %d: %.100s", i, a)
			}
			if !within(t, 2*time.Second, func() bool { return p.has(blob) }) {
				t.Fatalf("blob %d is not stored, with 2 MiB free and a limit of 1 MiB", i)
			}
			if stored := usedBytes(volume); stored > limit {
				t.Errorf("%d bytes are stored, the limit is %d", stored, limit)
			}
		}
	})
}

// usedBytes returns the bytes of stored and arriving blobs.
func usedBytes(volume string) (bytes int64) {
	for _, folder := range []string{"docker/registry/v2/blobs", "registry-cache"} {
		for _, file := range files(volume, folder) {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
		}
	}
	return bytes
}

// TestTagIndex: after a restart, the eviction of a tag's earlier manifests also removes their
// links.
func TestTagIndex(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o, volume := newOrigin(t), t.TempDir()
		for i := range 4 {
			blob := o.pushManifest("latest", v1.MediaTypeImageManifest, fmt.Sprintf(
				`{"schemaVersion":2,"mediaType":%q,"config":%s,"layers":[],"annotations":{"n":"%5000d"}}`, v1.MediaTypeImageManifest, emptyConfig, i))
			p := start(t, o.URL, volume)
			get(t, p.tag("latest"))
			await(t, "the manifest is stored", func() bool { return p.has(blob) })
			p.stop()
		}
		large := o.pushBlob(app, noise(90<<10))
		p := start(t, o.URL, volume, withLimit(100<<10))
		await(t, "a large blob is stored", func() bool { get(t, p.blob(large.String())); return p.has(large) })
		if !within(t, 2*time.Minute, func() bool {
			data, _ := filepath.Glob(filepath.Join(volume, "docker/registry/v2/blobs/sha256/*/*/data"))
			return len(data) <= 3 // right after the start, the list may be incomplete
		}) {
			t.Error("blobs beyond the limit stay")
		}
		left := func() (links []string) {
			for _, link := range indexed(volume) {
				if hex := filepath.Base(filepath.Dir(link)); !p.has(digest.NewDigestFromEncoded(digest.SHA256, hex)) {
					links = append(links, link)
				}
			}
			return links
		}
		if !within(t, 3*time.Second, func() bool { return len(left()) == 0 }) {
			t.Errorf("%d links of the tag's index have no blob", len(left()))
		}
	})
}

// indexed returns the links in distribution's index of the tag latest.
func indexed(volume string) []string {
	links, _ := filepath.Glob(filepath.Join(volume, repositories, app, "_manifests/tags/latest/index/sha256/*/link"))
	return links
}

// TestLinksOfLostBlob: links of a blob that has been lost and fetched again are evicted.
func TestLinksOfLostBlob(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		content := noise(20 << 10)
		blob := o.pushBlob(app, content)
		o.pushBlob("library/second", content)
		p := start(t, o.URL, t.TempDir(), withLimit(100<<10))
		second := p.url + "/v2/library/second/blobs/" + blob.String()
		for _, url := range []string{p.blob(blob.String()), second} {
			if a := get(t, url); !a.is(content) {
				t.Fatalf("%s", a)
			}
			await(t, "the blob is stored", func() bool { return p.has(blob) })
		}
		link := filepath.Join(p.volume, repositories, app, "_layers/sha256", blob.Encoded(), "link")
		await(t, "its link is stored", func() bool { _, err := os.Stat(link); return err == nil })
		if err := os.Remove(p.blobFile(blob)); err != nil {
			t.Fatal(err)
		}
		if a := get(t, second); !a.is(content) {
			t.Fatalf("%s", a)
		}
		await(t, "the blob is stored again", func() bool { return p.has(blob) })
		large := o.pushBlob(app, noise(90<<10))
		await(t, "the blob is evicted", func() bool { get(t, p.blob(large.String())); return !p.has(blob) && p.has(large) })
		if !within(t, 2*time.Second, func() bool { _, err := os.Stat(link); return err != nil }) {
			t.Error("a link of an evicted blob is left")
		}
	})
}

// TestManyBlobs: listing 100,000 blobs takes seconds of CPU time. Until the list is complete,
// nothing is evicted, so a full volume cannot store anything.
func TestManyBlobs(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 100,000 files")
	}
	volume := tmpfs(t, "size=2g,nr_inodes=1000000")
	blobs := filepath.Join(volume, "docker/registry/v2/blobs/sha256")
	for i := range 256 {
		if err := os.MkdirAll(filepath.Join(blobs, fmt.Sprintf("%02x", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100_000 {
		blob := digest.FromString(fmt.Sprint(i))
		folder := filepath.Join(blobs, blob.Encoded()[:2], blob.Encoded())
		if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(folder+"/data", []byte(blob), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(volume, "registry-cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	begin := processorTime(t)
	walked := len(files(volume, "docker"))
	walk := processorTime(t) - begin
	fillUp(t, volume)
	o := newOrigin(t)
	content := noise(1000)
	blob := o.pushBlob(app, content)
	begin = processorTime(t)
	p := start(t, o.URL, volume)
	stored := within(t, 2*time.Minute, func() bool {
		get(t, p.blob(blob.String()))
		<-time.After(500 * time.Millisecond) // storing is retried once a second
		return p.has(blob)
	})
	if took, bound := processorTime(t)-begin, 5*walk+5*time.Second; !stored || took > bound {
		t.Errorf("a plain walk of %d files and folders takes %s, the first eviction (%t) %s, at most %s wanted", walked, walk, stored, took, bound)
	}
}

// processorTime returns the CPU time of this process, which does not depend on other processes.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// fillUp leaves a little less than the reserve of 5 percent free on a tmpfs.
func fillUp(t *testing.T, volume string) {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(volume, &stat); err != nil {
		t.Fatal(err)
	}
	used := (int64(stat.Blocks) - int64(stat.Bfree)) * stat.Bsize // #nosec G115 -- a small volume
	size := (used - 40<<10) * 100 / 95
	if err := unix.Mount("", volume, "", unix.MS_REMOUNT, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatal(err)
	}
}
