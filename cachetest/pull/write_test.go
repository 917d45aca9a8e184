package pull

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

func TestReportWrite(t *testing.T) {
	failing := attempt(state(worker1), state(worker1, manifest, config))
	failing.Failure = "FATA[0010] pulling image: failed to pull and unpack:\nunexpected EOF"
	direct := attempt(state(worker1), all)
	direct.Mirrors = nil
	second := attempt(state(worker2), all)
	second.Node = "worker2"
	undescribed := testImage
	undescribed.Objects, undescribed.Problem = nil, "connection refused"
	tag := asks(accesslog.AskerCache, http.MethodHead, "v1", worker1, http.StatusOK, 0)

	for _, tc := range []struct {
		name    string
		image   Image
		batches []Evidence
	}{
		{"nothing", testImage, nil},
		{"miss-then-hit", testImage, []Evidence{
			{Attempts: []Attempt{attempt(state(worker1), all)}, Records: append(accesslog.Records{tag}, cacheGets(manifest, config, layer)...)},
			{Attempts: []Attempt{second}, Records: accesslog.Records{tag}},
		}},
		{"at-once", testImage, []Evidence{
			{Attempts: []Attempt{attempt(state(worker1), all), second}, Records: append(cacheGets(manifest, config), nodeGets(worker2, layer)...)},
		}},
		{"failed", testImage, []Evidence{{Attempts: []Attempt{failing}, Records: nodeGets(worker1, layer)}}},
		{"direct", testImage, []Evidence{{Attempts: []Attempt{direct}, Records: nodeGets(worker1, manifest, config, layer)}}},
		{"undescribed", undescribed, []Evidence{{Attempts: []Attempt{attempt(state(worker1), all)}, Records: nodeGets(worker2, manifest)}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report := NewReport(tc.image)
			for _, batch := range tc.batches {
				batch.Image = tc.image
				report.Add(Attribute(batch))
			}
			var out bytes.Buffer
			if err := report.Write(&out); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "report-"+tc.name+".txt", out.Bytes())
		})
	}
}

func TestReportErr(t *testing.T) {
	report := NewReport(testImage)
	report.Add(Attribute(Evidence{Image: testImage, Attempts: []Attempt{attempt(all, all)}}))
	if err := report.Err(); err != nil {
		t.Errorf("error %v for a pull that succeeded", err)
	}
	failed := attempt(state(worker1), state(worker1))
	failed.Failure = "manifest unknown"
	report.Add(Attribute(Evidence{Image: testImage, Attempts: []Attempt{failed}}))
	err := report.Err()
	if err == nil || !strings.Contains(err.Error(), "1 of 2 pulls of alpha.upstream.test/shop/web:v1 failed: round 1 on worker: manifest unknown") {
		t.Errorf("error %v", err)
	}
	if report.Total.Failed != 1 || report.Total.Pulls != 2 {
		t.Errorf("total %+v", report.Total)
	}
}
