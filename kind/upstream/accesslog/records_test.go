package accesslog

import (
	"maps"
	"slices"
	"testing"
	"time"
)

func blob(asker Asker, method, repository, reference string, bytes int64) Record {
	return Record{Kind: KindBlob, Asker: asker, Method: method, Repository: repository, Reference: reference, Bytes: bytes}
}

var sample = Records{
	{Kind: KindBase, Asker: AskerCache, Method: "GET", Bytes: 2, Time: time.Unix(10, 0)},
	{Kind: KindManifest, Asker: AskerCache, Method: "HEAD", Repository: "web", Reference: "v1", Time: time.Unix(11, 0)},
	{Kind: KindManifest, Asker: AskerCache, Method: "GET", Repository: "web", Reference: "v1", Bytes: 500, Time: time.Unix(12, 0)},
	blob(AskerHarness, "HEAD", "web", "sha256:a", 0),
	blob(AskerHarness, "GET", "web", "sha256:a", 7),
	blob(AskerCache, "GET", "web", "sha256:a", 1000),
	blob(AskerCache, "HEAD", "web", "sha256:b", 0),
	blob(AskerCache, "GET", "web", "sha256:b", 2000),
	blob(AskerNode, "GET", "web", "sha256:b", 2000),
	blob(AskerOther, "GET", "web", "sha256:c", 1),
	blob(AskerNode, "GET", "shop/other", "sha256:d", 4000),
}

func TestFilters(t *testing.T) {
	for name, tc := range map[string]struct {
		got  Records
		want int
	}{
		"repository":         {sample.Repository("web"), 9},
		"unknown repository": {sample.Repository("we"), 0},
		"pulls":              {sample.Pulls(), 9},
		"manifests":          {sample.Manifests(), 2},
		"heads":              {sample.Heads(), 3},
		"blob GETs by cache": {sample.Repository("web").Blobs().Gets().By(AskerCache), 2},
		"blob GETs by node":  {sample.Blobs().Gets().By(AskerNode), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if len(tc.got) != tc.want {
				t.Errorf("%d records, want %d: %v", len(tc.got), tc.want, tc.got)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	if got := sample.Blobs().Gets().By(AskerCache).Bytes(); got != 3000 {
		t.Errorf("bytes by cache %d, want 3000", got)
	}
	got, want := sample.Repository("web").Pulls().Blobs().Gets().PerReference(), map[string]int{"sha256:a": 1, "sha256:b": 2, "sha256:c": 1}
	if !maps.Equal(got, want) {
		t.Errorf("per reference %v, want %v", got, want)
	}
	if got, want := sample.Askers(), []Asker{AskerCache, AskerHarness, AskerNode, AskerOther}; !slices.Equal(got, want) {
		t.Errorf("askers %v, want %v", got, want)
	}
}

func TestEvidence(t *testing.T) {
	got := sample.Repository("web").Evidence()
	if got.ByCache != 2 || got.ByNodes != 1 || got.ByOthers != 1 || !slices.Equal(got.Repeated, []string{"sha256:b"}) {
		t.Errorf("evidence %+v", got)
	}
	if want := map[Asker]int64{AskerCache: 3500, AskerNode: 2000, AskerOther: 1}; !maps.Equal(got.Bytes, want) {
		t.Errorf("bytes %v, want %v", got.Bytes, want)
	}
	for want, evidence := range map[string]Evidence{
		"2 blob GETs by cache, 1 by nodes, 1 by others, 1 blobs more than once": got,
		"0 blob GETs by cache, 0 by nodes":                                      Records{}.Evidence(),
	} {
		if evidence.String() != want {
			t.Errorf("text %q, want %q", evidence, want)
		}
	}
}
