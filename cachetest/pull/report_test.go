package pull

import (
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	through := Pull{Node: "w1", Mirrors: []string{"http://10.96.0.5:5000"}, Seconds: 0.3}
	past := Pull{Node: "w1", Mirrors: []string{"http://10.96.0.5:5000"}, Fallback: true, Seconds: 1.2}
	long := past
	long.Seconds = 7.5
	other := long
	other.Node = "w2"
	failed := past
	failed.Error = "unexpected EOF"
	direct := Pull{Node: "w1", Seconds: 0.3}
	hit := through
	hit.Objects = []Served{{By: CacheHit}, {By: CacheMiss}}
	sixth := past
	sixth.Mirrors = []string{"https://[2001:db8::5]:5000"}
	for name, test := range map[string]struct {
		pulls  []Pull
		caches []string
		want   string
	}{
		"no pull":               {nil, nil, ""},
		"the cache":             {[]Pull{hit}, []string{"10.96.0.5:5000"}, "served by the cache: 1 object from its store, 1 fetched from the upstream, slowest pull 0.3s"},
		"the node had it":       {[]Pull{through}, nil, "nothing to fetch"},
		"no mirror":             {[]Pull{through, direct}, nil, "direct: w1 has no mirror"},
		"a failure counts most": {[]Pull{hit, past, failed}, nil, "failed: 1 of 3 pulls"},
		"one that is there": {
			[]Pull{hit, past},
			[]string{"10.96.0.5:5000"},
			"cache bypassed: w1 used the upstream: its mirror http://10.96.0.5:5000 did not serve everything, or was not asked; " +
				"slowest pull 1.2s, 1 fallback of 2 pulls",
		},
		"caches are not known":        {[]Pull{past}, nil, "did not serve everything, or was not asked"},
		"an old address":              {[]Pull{long}, []string{"10.96.0.9:5000"}, "pulls stall: w1 asks http://10.96.0.5:5000 before the upstream, but the cache is now at 10.96.0.9:5000; slowest pull 7.5s"},
		"the slower node":             {[]Pull{past, other}, nil, "w2 used the upstream"},
		"a cache that is gone":        {[]Pull{past}, []string{}, "but the upstream has no cache now"},
		"an IPv6 address that it has": {[]Pull{sixth}, []string{"[2001:db8::5]:5000"}, "did not serve everything, or was not asked"},
	} {
		t.Run(name, func(t *testing.T) {
			report := NewReport(testImage)
			for _, pull := range test.pulls {
				report.Add(Findings{Pull: pull})
			}
			report.Verdict = report.verdict(test.caches)
			if !strings.Contains(report.Verdict, test.want) || (test.want == "") != (report.Verdict == "") {
				t.Errorf("%q, want %q", report.Verdict, test.want)
			}
		})
	}
}
