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
	failing := pulled(state(worker1), state(worker1, manifest, config))
	failing.Failure = "FATA[0010] pulling image: failed to pull and unpack:\nunexpected EOF"
	direct := pulled(state(worker1), all)
	direct.Mirrors = nil
	second := pulled(state(worker2), all)
	second.Node = "worker2"
	undescribed := pulled(state(worker1), all, nodeGets(worker2, manifest)...)
	undescribed.Image.Objects, undescribed.Image.Problem = nil, "connection refused"
	tag := asks(accesslog.AskerCache, http.MethodHead, "v1", worker1, http.StatusOK, 0)

	first := pulled(state(worker1), all, append(accesslog.Records{tag}, cacheGets(manifest, config, layer)...)...)
	second.Records = accesslog.Records{tag}
	failing.Records = nodeGets(worker1, layer)
	direct.Records = nodeGets(worker1, manifest, config, layer)

	for _, tc := range []struct {
		name  string
		pulls []Evidence
	}{
		{"nothing", nil}, {"miss-then-hit", []Evidence{first, second}}, {"failed", []Evidence{failing}}, {"direct", []Evidence{direct}},
		{"undescribed", []Evidence{undescribed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			image := testImage
			if len(tc.pulls) > 0 {
				image = tc.pulls[0].Image
			}
			report := NewReport(image)
			for _, pull := range tc.pulls {
				report.Add(Attribute(pull))
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
	report.Add(Attribute(pulled(all, all)))
	if err := report.Err(); err != nil {
		t.Errorf("error %v for a pull that succeeded", err)
	}
	failed := pulled(state(worker1), state(worker1))
	failed.Failure = "manifest unknown"
	report.Add(Attribute(failed))
	err := report.Err()
	if err == nil || !strings.Contains(err.Error(), "1 of 2 pulls of alpha.upstream.test/shop/web:v1 failed: on worker: manifest unknown") {
		t.Errorf("error %v", err)
	}
	if report.Total.Failed != 1 {
		t.Errorf("total %+v", report.Total)
	}
}
