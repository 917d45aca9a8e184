package registry

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
)

func TestRepairState(t *testing.T) {
	blob, manifest := strings.Repeat("a", 64), strings.Repeat("b", 64)
	links := []string{
		"library/alpine/_layers/sha256/" + blob + "/link",
		"library/alpine/_manifests/revisions/sha256/" + manifest + "/link",
		"library/alpine/_manifests/tags/latest/current/link",
		"shop/_layers/sha256/" + blob + "/link",
	}
	all := []string{"library/alpine@sha256:" + blob, "library/alpine@sha256:" + manifest, "shop@sha256:" + blob}
	hour, never := time.Hour, time.Duration(0)
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		state *string
		ttl   *time.Duration
		links []string
		want  []string // keys of the state afterwards; nil if it must be as it was
		until time.Time
	}{
		"empty":           {ptr(""), &hour, links, all, now.Add(hour)},
		"half written":    {ptr(`{"shop@sha256:`), &hour, links, all, now.Add(hour)},
		"the default TTL": {ptr(""), nil, links, all, now.Add(defaultTTL)},
		"nothing stored":  {ptr(""), &hour, nil, []string{}, time.Time{}},
		"sound":           {ptr(`{"a@b":{"Key":"a@b"}}`), &hour, links, nil, time.Time{}},
		"missing":         {nil, &hour, links, nil, time.Time{}},
		"nothing expires": {ptr(""), &never, links, nil, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if test.state != nil {
				write(t, filepath.Join(root, stateFile), *test.state)
			}
			for _, link := range test.links {
				write(t, filepath.Join(root, "docker/registry/v2/repositories", link), "sha256:")
			}
			config := &configuration.Configuration{Storage: configuration.Storage{"filesystem": {"rootdirectory": root}}}
			config.Proxy.TTL = test.ttl
			if err := repairState(config, now); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(filepath.Join(root, stateFile))
			if test.want == nil {
				if (test.state == nil) != os.IsNotExist(err) || test.state != nil && string(content) != *test.state {
					t.Errorf("the state has changed: %s, %v", content, err)
				}
				return
			}
			got := map[string]expiry{}
			if err := json.Unmarshal(content, &got); err != nil {
				t.Fatalf("%s: %v", content, err)
			}
			if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, test.want) {
				t.Errorf("entries %q, want %q", keys, test.want)
			}
			for key, entry := range got {
				if entry.Key != key || !entry.Expiry.Equal(test.until) || (entry.EntryType == expiryOfManifest) != strings.HasSuffix(key, manifest) {
					t.Errorf("entry %s: %+v", key, entry)
				}
			}
		})
	}
}

func ptr(text string) *string { return &text }

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
