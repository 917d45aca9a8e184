package accesslog

import (
	"maps"
	"slices"
	"strings"
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
		"since":              {sample.Since(time.Unix(11, 0)), 2},
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

func TestReadUntil(t *testing.T) {
	const one = `{"path":"/v2/","kind":"base","asker":"cache"}` + "\n"
	const settle = `{"path":"/-/settle","query":"m1"}` + "\n"
	for name, tc := range map[string]struct {
		log     string
		records int
		err     string
	}{
		"all before the mark":     {one + one + settle + one, 2, ""},
		"other marks left out":    {one + strings.ReplaceAll(settle, "m1", "m0") + one + settle, 2, ""},
		"no mark":                 {one, 0, "ends before the request /-/settle?m1"},
		"mark of somebody else":   {one + strings.ReplaceAll(settle, "m1", "m11"), 0, "ends before"},
		"a line is not a record":  {one + "panic: x\n" + settle, 0, `line 2, "panic: x"`},
		"a line was cut":          {one[:20] + "\n" + settle, 0, "line 1"},
		"nothing but the request": {settle, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			records, err := ReadUntil(strings.NewReader(tc.log), "m1")
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if len(records) != tc.records {
				t.Errorf("%d records, want %d", len(records), tc.records)
			}
		})
	}
}

// TestReaderGoesOn: the next call returns the old records and new ones, and a caller's changes to
// the result have no effect.
func TestReaderGoesOn(t *testing.T) {
	const one, settle = `{"path":"/v2/","kind":"base"}` + "\n", `{"path":"/-/settle","query":"m1"}` + "\n"
	r := NewReader(strings.NewReader(one + settle + one + one + strings.ReplaceAll(settle, "m1", "m2")))
	first, err := r.Until("m1")
	if err != nil || len(first) != 1 {
		t.Fatalf("%d records, error %v", len(first), err)
	}
	_ = append(first, Record{Path: "/mine"})
	second, err := r.Until("m2")
	if err != nil || len(second) != 3 || second[1].Path != "/v2/" {
		t.Fatalf("%v, error %v", second, err)
	}
	if _, err := r.Until("m3"); err == nil {
		t.Error("no error at the end")
	}
}
