package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

func TestFits(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		size                  int64
		free, files, promised uint64
		want                  bool
	}{
		"an empty volume":                  {size: mib, free: 1000 * mib, files: 1000, want: true},
		"just enough":                      {size: mib, free: mib + spare, files: 1000, want: true},
		"a byte too little":                {size: mib, free: mib + spare - 1, files: 1000},
		"enough, but others will have it":  {size: mib, free: 100 * mib, files: 1000, promised: 95 * mib},
		"a size that nobody knows":         {size: -1, free: spare, files: 1000, want: true},
		"space, but no files":              {size: mib, free: 1000 * mib, files: 3},
		"more than there ever was":         {size: math.MaxInt64, free: 1000 * mib, files: 1000},
		"nothing is left, nothing is kept": {free: 0, files: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fits(test.size, test.free, test.files, test.promised); got != test.want {
				t.Errorf("fits: %t", got)
			}
		})
	}
}

// smallVolume is a file system of so many bytes.
func smallVolume(t *testing.T, options string) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("fetch-test", folder, "tmpfs", 0, options); err != nil {
		t.Skipf("a small volume needs privileges: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// A blob that does not fit, and a volume on which nothing fits, must not break a pull.
func TestAFullVolume(t *testing.T) {
	u := newUpstream(t)
	config := configOf(t, u)
	root := smallVolume(t, "size=24m")
	config.Storage["filesystem"]["rootdirectory"] = root
	use(t, config)
	cache := serve(t, config)
	pullTwice := func(what string, blob digest.Digest, asked int) {
		t.Helper()
		for range 2 {
			get(t.Context(), cache, blobPath("library/app", blob)).require(t, blob)
		}
		if got := u.asked(blob); got != asked {
			t.Errorf("%s: the upstream was asked %d times, want %d", what, got, asked)
		}
	}
	pullTwice("it fits", u.add(t, 4<<20), 1)
	pullTwice("it does not fit", u.add(t, 20<<20), 2)
	pullTwice("it fits, after one that did not", u.add(t, 1<<20), 1)

	fill(t, root)
	pullTwice("nothing fits", u.add(t, 100), 2)
	content, err := json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.FromString("{}"), Size: 2}, Layers: []v1.Descriptor{},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest := u.put(content)
	u.tag("latest", manifest)
	for _, reference := range []string{manifest.String(), "latest"} {
		for range 2 {
			get(t.Context(), cache, "/v2/library/app/manifests/"+reference).require(t, manifest)
		}
	}
}

// fill leaves nothing of a volume.
func fill(t *testing.T, root string) {
	t.Helper()
	filler, err := os.Create(filepath.Join(root, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = filler.Close() }()
	for err == nil {
		_, err = filler.Write(make([]byte, 64<<10))
	}
}

// A store that fails while a blob is fetched must not break a pull either: somebody else may write to its volume.
func TestTheStoreFails(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(t *testing.T, root string)
		held bool // it fails while the blob is fetched
	}{
		"in the middle": {fill, true},
		"at once": {func(t *testing.T, root string) {
			t.Helper()
			if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			config := configOf(t, u)
			root := smallVolume(t, "size=24m")
			config.Storage["filesystem"]["rootdirectory"] = root
			use(t, config)
			group, cache := groupOf(config), serve(t, config)
			blob := u.add(t, 8<<20)
			release, _ := u.hold()
			if !test.held {
				release()
				test.fail(t, root)
			}
			clients := []<-chan answer{pull(t.Context(), cache, blobPath("library/app", blob)), pull(t.Context(), cache, blobPath("library/app", blob))}
			part := make(chan answer, 1)
			go func() { part <- getRange(t.Context(), cache, blobPath("library/app", blob), "bytes=6000000-") }()
			if test.held {
				joined(t, group, blob, 3)
				eventually(t, "half of the blob has come", func() bool { return promised(group) == 4<<20 })
				test.fail(t, root)
			}
			release()
			for _, client := range clients {
				(<-client).require(t, blob)
			}
			if got := <-part; got.err != nil || !bytes.HasSuffix(u.contents[blob.String()], got.body) || len(got.body) < 8<<20-6_000_000 {
				t.Errorf("the part: status %d, %d bytes, error %v", got.status, len(got.body), got.err)
			}
		})
	}
}

// A message must not say that a volume is full when it is promised.
func TestRoomSaysWhatIsPromised(t *testing.T) {
	group := patientGroup(t)
	if err := group.room(1); err != nil {
		t.Skipf("the volume of the test is full: %v", err)
	}
	group.flights[digest.FromString("x")] = group.newFlight(func() {}, "library/app", 1<<50)
	if err := group.room(1); !errors.Is(err, errNoRoom) || !strings.Contains(err.Error(), "fetches under way will take 1073741824 MiB") {
		t.Errorf("error %v", err)
	}
}

// What is on its way has its room already.
func TestPromises(t *testing.T) {
	u := newUpstream(t)
	cache, group := newCache(t, u)
	blob := u.add(t, 1<<20)
	release, _ := u.hold()
	only := pull(t.Context(), cache, blobPath("library/app", blob))
	joined(t, group, blob, 1)
	eventually(t, "half of the blob has come", func() bool { return promised(group) == 1<<19 })
	group.mu.Lock()
	f := group.flights[blob]
	group.mu.Unlock()
	f.mu.Lock()
	f.progress = f.progress.Add(-2 * patient)
	f.mu.Unlock()
	if got := promised(group); got != 0 {
		t.Errorf("a fetch that does not get on has %d bytes promised", got)
	}
	release()
	(<-only).require(t, blob)
	eventually(t, "nothing is promised", func() bool { return promised(group) == 0 })
}

func promised(g *Group) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.promised()
}
