package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sirupsen/logrus"
	logrustest "github.com/sirupsen/logrus/hooks/test"
)

func TestLinkOf(t *testing.T) {
	for folder, want := range map[string]string{
		"app/_layers/sha256/" + blob:                          "app@sha256:" + blob + " 0",
		"a/b/c/_layers/sha256/" + blob:                        "a/b/c@sha256:" + blob + " 0",
		"tags/_layers/sha256/" + blob:                         "tags@sha256:" + blob + " 0",
		"app/_layers/sha512/" + strings.Repeat("c", 128):      "app@sha512:" + strings.Repeat("c", 128) + " 0",
		"app/_manifests/revisions/sha256/" + manifest:         "app@sha256:" + manifest + " 1",
		"app/_manifests/tags/latest/index/sha256/" + manifest: "",
		"app/_manifests/revisions/sha256":                     "",
		"app/_layers/sha256/" + blob[1:]:                      "",
		"app/_layers/md5/" + blob[:32]:                        "",
		"app/_layers/sha256/" + blob + "/x":                   "",
		"App/_layers/sha256/" + blob:                          "",
		"/_layers/sha256/" + blob:                             "",
		"_layers/sha256/" + blob:                              "",
		"app":                                                 "",
		"":                                                    "",
	} {
		got := ""
		if link, isLink := linkOf(folder); isLink {
			got = fmt.Sprint(link.key, " ", link.entryType)
			if !strings.HasSuffix(link.key, "@"+link.digest.String()) {
				t.Errorf("%s: digest %s", folder, link.digest)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", folder, got, want)
		}
	}
}

// What is in a store besides links that are good gets no entry.
func TestNoEntry(t *testing.T) {
	root := t.TempDir()
	write(t, dataOf(root, blob), "", midnight)
	for _, path := range []string{
		"app/_manifests/tags/latest/current/link",
		"app/_manifests/tags/latest/index/sha256/" + blob + "/link",
		"app/_uploads/0f0e/hashstates/sha256/0",
		"app/_uploads/_layers/sha256/" + blob + "/link",
		"app/_layers/sha256/" + manifest + "/link", // its blob is gone with another repository's time for it
		"shop/_layers/sha256/" + blob + "/link.0f0e.tmp",
		"file",
	} {
		write(t, filepath.Join(repositoriesOf(root), path), "", midnight)
	}
	entries := map[string]*expiry{}
	if added := hour(root).addMissing(t.Context(), entries); added != 0 || len(entries) != 0 {
		t.Errorf("entries: %q", slices.Collect(maps.Keys(entries)))
	}
	if _, err := os.Stat(filepath.Join(repositoriesOf(root), "app/_uploads")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was fetched in part is kept: %v", err)
	}
}

func TestExpiry(t *testing.T) {
	const d = 24 * time.Hour
	for name, test := range map[string]struct{ link, data, want time.Duration }{
		"stored just now":                        {0, 0, time.Hour},
		"stored a while ago":                     {-10 * time.Minute, -10 * time.Minute, 50 * time.Minute},
		"linked later":                           {-10 * time.Minute, -d, 50 * time.Minute},
		"fetched again by another repository":    {-d, -10 * time.Minute, 50 * time.Minute},
		"the clock was wrong":                    {d, d, time.Hour},
		"overdue: in its turn, which is at once": {-d, -d, 0},
		"overdue since just now":                 {-time.Hour - 1, -time.Hour - 1, 0},
		"due in an instant: as any other":        {-time.Hour + 1, -time.Hour + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(repositoriesOf(root), "app/_layers/sha256", blob, "link"), "", midnight.Add(test.link))
			write(t, dataOf(root, blob), "", midnight.Add(test.data))
			entries := map[string]*expiry{}
			hour(root).addMissing(t.Context(), entries)
			if entry := entries["app@sha256:"+blob]; entry == nil || !entry.Expiry.Equal(midnight.Add(test.want)) {
				t.Errorf("%+v, want %s", entry, midnight.Add(test.want))
			}
		})
	}
}

// distribution would delete all that is overdue in the same instant, while pulls wait for it.
func TestOverdueOneAfterAnother(t *testing.T) {
	root := t.TempDir()
	storeOf(t, root, 20, midnight.Add(-2*time.Hour))
	entries := map[string]*expiry{"old": {Key: "old", Expiry: midnight.Add(-time.Hour)}}
	hour(root).addMissing(t.Context(), entries)
	if old := entries["old"]; !old.Expiry.Equal(midnight.Add(-time.Hour)) {
		t.Errorf("an entry that was there has changed: %+v", old)
	}
	delete(entries, "old")
	turns := slices.SortedFunc(maps.Values(entries), func(a, b *expiry) int { return a.Expiry.Compare(b.Expiry) })
	for i, entry := range turns {
		if want := midnight.Add(time.Duration(i) * overdueSpacing); !entry.Expiry.Equal(want) || len(turns) != 20 {
			t.Fatalf("turn %d of %d is at %s, want %s", i, len(turns), entry.Expiry, want)
		}
	}
}

// A digest that is both in one repository has one entry in distribution's state: that which removes the blob, too.
func TestBlobAndManifest(t *testing.T) {
	root := t.TempDir()
	write(t, dataOf(root, blob), "", midnight)
	write(t, filepath.Join(repositoriesOf(root), "app/_layers/sha256", blob, "link"), "", midnight)
	write(t, filepath.Join(repositoriesOf(root), "app/_manifests/revisions/sha256", blob, "link"), "", midnight)
	entries := map[string]*expiry{}
	if added := hour(root).addMissing(t.Context(), entries); added != 1 || entries["app@sha256:"+blob].EntryType != expiryOfBlob {
		t.Errorf("%d entries: %+v", added, entries)
	}
}

// What is not reached is left as it is: a start waits neither for a slow disk nor when it is told to end.
func TestTheWalkIsBounded(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx   context.Context //nolint:containedctx // it is what is tested
		limit time.Duration
		added int
		warns bool
	}{
		"in time":     {t.Context(), time.Hour, 3, false},
		"a slow disk": {t.Context(), time.Nanosecond, 0, true},
		"told to end": {ended, time.Hour, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			storeOf(t, root, 3, midnight)
			log := logrustest.NewLocal(logrus.StandardLogger())
			r, entries := hour(root), map[string]*expiry{"kept": {Key: "kept"}}
			r.limit = test.limit
			if added := r.addMissing(test.ctx, entries); added != test.added || entries["kept"] == nil || len(entries) != 1+added {
				t.Errorf("added %d: %v", added, entries)
			}
			if warned(log, "looked through within") != test.warns {
				t.Errorf("warned: %v", log.AllEntries())
			}
		})
	}
}

// A folder that cannot be read keeps nothing else from getting its entry; some need not be read.
func TestFolderThatCannotBeRead(t *testing.T) {
	known := "app/_layers/sha256/" + blob
	for folder, read := range map[string]bool{"": true, "app/_uploads": false, "app/_manifests/tags": false, known: false} {
		t.Run(strings.ReplaceAll(folder, "/", " "), func(t *testing.T) {
			root := t.TempDir()
			storeOf(t, root, 3, midnight)
			makeUnreadable(t, filepath.Join(repositoriesOf(root), folder))
			log := logrustest.NewLocal(logrus.StandardLogger())
			entries := map[string]*expiry{"app@sha256:" + blob: {}}
			if added := hour(root).addMissing(t.Context(), entries); added != 3 || warned(log, "cannot read a folder of the store") != read {
				t.Errorf("added %d, warned %v", added, log.AllEntries())
			}
		})
	}
}

// makeUnreadable makes a folder in this one whose path is too long for anybody to read it.
func makeUnreadable(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("a", 200)
	deep, err := os.OpenRoot(folder)
	for range 25 {
		if err != nil {
			t.Fatal(err)
		}
		var below *os.Root
		if err = deep.Mkdir(name, 0o755); err == nil {
			below, err = deep.OpenRoot(name)
		}
		_ = deep.Close()
		deep = below
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = deep.Close()
}

// Each start of a cache does this before it serves: with 10,000 links that all have their entry, and with none of them.
func BenchmarkRepair(b *testing.B) {
	const links = 10_000
	root := b.TempDir()
	storeOf(b, root, links, midnight)
	b.Run("complete", func(b *testing.B) {
		if !hour(root).run(b.Context()) {
			b.Fatal("no state")
		}
		for b.Loop() {
			hour(root).run(b.Context())
		}
	})
	b.Run("missing", func(b *testing.B) {
		for b.Loop() {
			if err := os.Remove(filepath.Join(root, stateFile)); err != nil {
				b.Fatal(err)
			}
			hour(root).run(b.Context())
		}
	})
}

func warned(log *logrustest.Hook, text string) bool {
	return slices.ContainsFunc(log.AllEntries(), func(entry *logrus.Entry) bool {
		return entry.Level == logrus.WarnLevel && strings.Contains(entry.Message, text)
	})
}

func hour(root string) repair {
	return repair{root: root, ttl: time.Hour, limit: time.Hour, now: midnight}
}

// storeOf has so many blobs in ten repositories.
func storeOf(t testing.TB, root string, blobs int, modified time.Time) {
	t.Helper()
	for i := range blobs {
		encoded := digest.FromString(fmt.Sprint(i)).Encoded()
		write(t, dataOf(root, encoded), "", modified)
		write(t, filepath.Join(repositoriesOf(root), fmt.Sprintf("tags/app-%d/_layers/sha256/%s/link", i%10, encoded)), "", modified)
	}
}
