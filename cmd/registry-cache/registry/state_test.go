package registry

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"golang.org/x/sys/unix"
)

var (
	blob, manifest = strings.Repeat("a", 64), strings.Repeat("b", 64)
	midnight       = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
)

// stored is a store with two repositories, and an hour's worth of entries for it.
func stored(t *testing.T, root string) map[string]expiry {
	t.Helper()
	for _, digest := range []string{blob, manifest} {
		write(t, dataOf(root, digest), "", midnight.Add(-time.Hour))
	}
	for path, age := range map[string]time.Duration{
		"library/alpine/_layers/sha256/" + blob:                  time.Minute,
		"library/alpine/_manifests/revisions/sha256/" + manifest: 2 * time.Minute,
		"shop/_layers/sha256/" + blob:                            3 * time.Minute,
	} {
		write(t, filepath.Join(repositoriesOf(root), path, "link"), "", midnight.Add(-age))
	}
	all := map[string]expiry{}
	for _, entry := range []expiry{
		{"library/alpine@sha256:" + blob, midnight.Add(59 * time.Minute), expiryOfBlob},
		{"library/alpine@sha256:" + manifest, midnight.Add(58 * time.Minute), expiryOfManifest},
		{"shop@sha256:" + blob, midnight.Add(57 * time.Minute), expiryOfBlob},
	} {
		all[entry.Key] = entry
	}
	return all
}

func TestRepairState(t *testing.T) {
	shop := "shop@sha256:" + blob
	const before = `{"Key":"shop@sha256:KEY","ExpiryData":"2020-01-01T01:02:03.000000004+05:00","EntryType":7}`
	sound := `{"shop@sha256:` + blob + `":` + strings.Replace(before, "KEY", blob, 1) + `}`
	gone := `"app@sha256:` + manifest + `":{"Key":"app@sha256:` + manifest + `","ExpiryData":"2027-01-01T00:00:00Z","EntryType":1}`
	for name, test := range map[string]struct {
		state *string // none if nil
		kept  []string
	}{
		"missing":                    {},
		"empty":                      {state: new("")},
		"half written":               {state: new(`{"shop@sha256:`)},
		"zeroes":                     {state: new("\x00\x00\x00")},
		"null":                       {state: new("null")},
		"an entry that is null":      {state: new(`{` + gone + `,"x":null}`)},
		"an entry of another kind":   {state: new(`{` + gone + `,"x":[]}`)},
		"a time that is none":        {state: new(`{"x":{"ExpiryData":"soon"}}`)},
		"short":                      {state: new(sound), kept: []string{shop}},
		"without any":                {state: new("{}")},
		"more than what is stored":   {state: new(`{` + gone + `}`), kept: []string{"app@sha256:" + manifest}},
		"short, and more than there": {state: new(sound[:len(sound)-1] + "," + gone + "}"), kept: []string{shop, "app@sha256:" + manifest}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			want := stored(t, root)
			file := filepath.Join(root, stateFile)
			if test.state != nil {
				write(t, file, *test.state, midnight)
				old := map[string]expiry{}
				_ = json.Unmarshal([]byte(*test.state), &old) // nothing is kept of a broken one
				for _, key := range test.kept {
					want[key] = old[key]
				}
			}
			if config := configOf(root); repairsTo(t, config) != time.Hour {
				t.Errorf("the TTL is %s now", *config.Proxy.TTL)
			}
			requireState(t, root, want)

			info, err := os.Stat(file)
			repairState(t.Context(), configOf(root), midnight)
			again, errAgain := os.Stat(file)
			if err != nil || errAgain != nil || !os.SameFile(info, again) || info.Mode() != 0o644 {
				t.Errorf("a state that is complete was written again, or it is %s", info.Mode())
			}
		})
	}
}

// What distribution does not read, and what needs no entry, is left alone.
func TestNoRepair(t *testing.T) {
	for name, change := range map[string]func(*configuration.Configuration, string){
		"no upstream":     func(config *configuration.Configuration, _ string) { config.Proxy.RemoteURL = "" },
		"nothing expires": func(config *configuration.Configuration, _ string) { config.Proxy.TTL = new(time.Duration) },
		"no folder": func(config *configuration.Configuration, _ string) {
			config.Storage = configuration.Storage{"inmemory": config.Storage.Parameters()}
		},
		"nothing stored": func(_ *configuration.Configuration, root string) { _ = os.RemoveAll(filepath.Join(root, "docker")) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			stored(t, root)
			config := configOf(root)
			change(config, root)
			repairState(t.Context(), config, midnight)
			if _, err := os.Stat(filepath.Join(root, stateFile)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("there is a state: %v", err)
			}
		})
	}
}

func TestDefaultTTL(t *testing.T) {
	root := t.TempDir()
	want := stored(t, root)
	config := configOf(root)
	config.Proxy.TTL = nil
	repairState(t.Context(), config, midnight)
	for key, entry := range want {
		entry.Expiry = entry.Expiry.Add(7*24*time.Hour - time.Hour)
		want[key] = entry
	}
	requireState(t, root, want)
}

// A kill leaves files beside the state, distribution's and ours; others are somebody else's.
func TestLeftovers(t *testing.T) {
	root := t.TempDir()
	want := stored(t, root)
	const other, foreign = stateFile + ".backup", "tmp"
	for _, name := range []string{stateFile + ".0f0e.tmp", "." + stateFile + "-123", other, foreign} {
		write(t, filepath.Join(root, name), "{", midnight)
	}
	repairState(t.Context(), configOf(root), midnight)
	requireState(t, root, want)
	left, err := os.ReadDir(root)
	var names []string
	for _, entry := range left {
		names = append(names, entry.Name())
	}
	if got := strings.Join(names, " "); err != nil || got != "docker "+stateFile+" "+other+" "+foreign {
		t.Errorf("left: %s, %v", got, err)
	}
}

// Whatever is the matter with the state and its volume, distribution can midnight afterwards.
func TestStateThatCannotBeRepaired(t *testing.T) {
	for name, test := range map[string]struct {
		state   string // a folder if "folder"
		options string // of the volume's file system
		full    bool
		flags   uintptr
		ttl     time.Duration
		left    string
	}{
		"what cannot be read":          {state: "folder", ttl: 0, left: "folder"},
		"empty, full volume":           {full: true, ttl: time.Hour, left: "none"},
		"half written, full volume":    {state: `{"`, full: true, ttl: time.Hour, left: "all"},
		"sound and short, full volume": {state: `{}`, full: true, ttl: time.Hour, left: `{}`},
		"empty, read-only volume":      {flags: unix.MS_RDONLY, ttl: 0, left: ""},
		"sound and short, no writing":  {state: `{}`, flags: unix.MS_RDONLY, ttl: time.Hour, left: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if test.state != "folder" {
				mount(t, root)
			}
			want := stored(t, root)
			file := filepath.Join(root, stateFile)
			if test.state == "folder" {
				if err := os.Mkdir(file, 0o755); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, file, test.state, midnight)
			}
			if test.full {
				fill(t, filepath.Join(root, "filler"))
			}
			if test.flags != 0 {
				if err := unix.Mount("", root, "", unix.MS_REMOUNT|test.flags, ""); err != nil {
					t.Fatal(err)
				}
			}
			if ttl := repairsTo(t, configOf(root)); ttl != test.ttl {
				t.Errorf("the TTL is %s, want %s", ttl, test.ttl)
			}
			switch test.left {
			case "all":
				requireState(t, root, want)
			case "none":
				if content, err := os.ReadFile(file); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the state is %q, %v", content, err)
				}
			case "folder":
				if info, err := os.Stat(file); err != nil || !info.IsDir() {
					t.Errorf("the folder is gone: %v", err)
				}
			default:
				if content, err := os.ReadFile(file); err != nil || string(content) != test.left {
					t.Errorf("the state is %q, %v", content, err)
				}
			}
			if temps, _ := filepath.Glob(filepath.Join(root, leftTempOfOurs)); len(temps) > 0 {
				t.Errorf("left: %q", temps)
			}
		})
	}
}

// mount makes the folder a small volume of its own.
func mount(t *testing.T, folder string) {
	t.Helper()
	if err := unix.Mount("state-test", folder, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("a small volume needs privileges: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill writes until nothing more fits onto the volume.
func fill(t *testing.T, file string) {
	t.Helper()
	filler, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = filler.Close() }()
	for err == nil {
		_, err = filler.Write(make([]byte, 1<<10))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

func configOf(root string) *configuration.Configuration {
	config := &configuration.Configuration{Storage: configuration.Storage{"filesystem": {"rootdirectory": root}}}
	config.Proxy.RemoteURL = "http://upstream.test"
	config.Proxy.TTL = new(time.Hour)
	return config
}

// repairsTo returns the TTL that distribution gets.
func repairsTo(t *testing.T, config *configuration.Configuration) time.Duration {
	t.Helper()
	repairState(t.Context(), config, midnight)
	return *config.Proxy.TTL
}

func requireState(t *testing.T, root string, want map[string]expiry) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]expiry{}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	same := func(a, b expiry) bool {
		return a.Key == b.Key && a.EntryType == b.EntryType && a.Expiry.Equal(b.Expiry)
	}
	if !maps.EqualFunc(got, want, same) {
		t.Errorf("the state is\n%v, want\n%v", got, want)
	}
}

func repositoriesOf(root string) string {
	return filepath.Join(root, "docker/registry/v2/repositories")
}

func dataOf(root, digest string) string {
	return filepath.Join(root, "docker/registry/v2/blobs/sha256", digest[:2], digest, "data")
}

func write(t testing.TB, path, content string, modified time.Time) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, modified, modified); err != nil {
		t.Fatal(err)
	}
}
