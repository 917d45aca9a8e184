package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// rigOf returns a rig whose commands succeed and print what the function answer returns.
func rigOf(answer func(line string) string) *Rig {
	r := &Rig{transcript: io.Discard, result: &Result{}}
	r.execute = func(_ context.Context, args []string, out, _ io.Writer) int {
		_, _ = io.WriteString(out, answer(strings.Join(args, " ")))
		return 0
	}
	r.output = func(_ context.Context, argv ...string) (string, error) { return answer(strings.Join(argv, " ")), nil }
	return r
}

// wantClaim checks err and the evidence. If the claim holds, err must be nil and the evidence must
// contain the claim. Otherwise err must be an *Unmet with the claim.
func wantClaim(t *testing.T, r *Rig, err error, claim string, holds bool) {
	t.Helper()
	var unmet *Unmet
	switch {
	case holds && err != nil:
		t.Errorf("%v, want that %q holds", err, claim)
	case holds && !strings.Contains(strings.Join(r.result.Evidence, "\n"), claim+": "):
		t.Errorf("evidence %q, want %q", r.result.Evidence, claim)
	case !holds && (!errors.As(err, &unmet) || unmet.Claim != claim):
		t.Errorf("%v, want that %q does not hold", err, claim)
	}
}

// TestWithin checks that a time equal to the bound is still within it.
func TestWithin(t *testing.T) {
	for took, holds := range map[time.Duration]bool{4 * time.Second: true, 5 * time.Second: true, 5*time.Second + 1: false} {
		r := rigOf(nil)
		wantClaim(t, r, r.Within("it is quick", took, 5*time.Second), "it is quick", holds)
		if len(r.result.Figures) != 1 || r.result.Figures[0] != (Figure{"it is quick", took.Seconds(), 5}) {
			t.Errorf("%+v", r.result.Figures)
		}
	}
}

// TestSoon checks that Soon returns an *Unmet if the bound of the claim is exceeded, but not for
// other errors or if Bug.Bound is exceeded.
func TestSoon(t *testing.T) {
	const claim = "it comes"
	broken := errors.New("no such node")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("s0 took longer than 4m0s"))
	for name, test := range map[string]struct {
		ctx   context.Context
		bound time.Duration
		err   error
		comes bool
		unmet bool
	}{
		"it comes":                   {t.Context(), time.Hour, nil, true, false},
		"it does not":                {t.Context(), time.Nanosecond, nil, false, true},
		"nobody can look":            {t.Context(), time.Hour, broken, false, false},
		"the time of the bug is up":  {ended, time.Hour, nil, false, false},
		"a command ends by the time": {t.Context(), time.Hour, fmt.Errorf("testbed exec: %w", context.DeadlineExceeded), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigOf(nil)
			err := r.Soon(test.ctx, claim, test.bound, func(context.Context) (bool, string, error) { return test.comes, "2 left", test.err })
			if test.comes || test.unmet {
				wantClaim(t, r, err, claim, test.comes)
			} else if unmet := (*Unmet)(nil); err == nil || errors.As(err, &unmet) {
				t.Errorf("%v, want an error that is no claim", err)
			}
			if test.unmet && test.err == nil && !strings.Contains(err.Error(), "last seen: 2 left") && !strings.Contains(err.Error(), "last seen: none") {
				t.Errorf("%v: what was seen last is missing", err)
			}
			if len(r.result.Figures) > 0 != test.comes {
				t.Errorf("figures %+v", r.result.Figures)
			}
		})
	}
}

// reportOf returns a report of one pull. The arguments are the sources of its manifest, its config
// and its layers.
func reportOf(by ...pull.Source) *pull.Report {
	report := &pull.Report{Pulls: []pull.Pull{{}}}
	report.Total.Pulls = 1
	for i, source := range by {
		part := pull.PartLayer
		switch i {
		case 0:
			part = pull.PartManifest
		case 1:
			part = pull.PartConfig
		}
		report.Pulls[0].Objects = append(report.Pulls[0].Objects, pull.Served{Object: pull.Object{Part: part}, By: source})
	}
	return report
}

// TestBlobsBy checks that manifests do not count as blobs, and that the blobs of all pulls count.
func TestBlobsBy(t *testing.T) {
	report := reportOf(pull.CacheHit, pull.CacheHit, pull.CacheMiss)
	second := reportOf(pull.CacheHit, pull.CacheHit, pull.CacheHit)
	report.Pulls = append(report.Pulls, second.Pulls...)
	report.Pulls[1].Objects = append(report.Pulls[1].Objects, pull.Served{Object: pull.Object{Part: pull.PartIndex}, By: pull.CacheHit})
	for source, want := range map[pull.Source]int{pull.CacheHit: 3, pull.CacheMiss: 1, pull.FromUpstream: 0} {
		if got := BlobsBy(report, source); got != want {
			t.Errorf("%s: %d, want %d", source, got, want)
		}
	}
}

// TestThroughCache checks that the cache must fetch all blobs, and that no part of the pull may
// bypass the cache.
func TestThroughCache(t *testing.T) {
	img := pull.Pushed{Objects: make([]pull.Object, 3)}
	for name, test := range map[string]struct {
		report            *pull.Report
		failed, fallbacks int
		want              bool
	}{
		"all of it":                  {reportOf(pull.CacheMiss, pull.CacheMiss, pull.CacheMiss), 0, 0, true},
		"a layer past it":            {reportOf(pull.CacheMiss, pull.CacheMiss, pull.FromUpstream), 0, 0, false},
		"a layer of an earlier pull": {reportOf(pull.CacheMiss, pull.CacheMiss, pull.CacheHit), 0, 0, false},
		"a manifest past it":         {reportOf(pull.FromUpstream, pull.CacheMiss, pull.CacheMiss), 0, 1, false},
		"it failed in the end":       {reportOf(pull.CacheMiss, pull.CacheMiss, pull.CacheMiss), 1, 0, false},
		"nothing was pulled":         {&pull.Report{}, 0, 0, false},
	} {
		test.report.Total.Failed, test.report.Total.Fallbacks = test.failed, test.fallbacks
		if got := throughCache(test.report, img); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
