package doctor

import (
	"bytes"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

func TestWrite(t *testing.T) {
	report := &Report{}
	report.Add("this machine", Machine(preflight.Host{}, []preflight.Failure{{Problem: "2.0 GiB of memory, 6.0 GiB needed", Fix: "free some, or use a larger machine"}})...)
	report.Add("testbed", Findings([]finding.Finding{
		{Certain: true, Problem: "The node is gone.", Details: []string{"NodeStatusUnknown:\nkubelet stopped"}, Fix: "testbed up"},
		{Problem: "Pulls failed."},
	})...)
	var out bytes.Buffer
	if err := report.Write(&out); err != nil {
		t.Error(err)
	}
	golden.Compare(t, "report.txt", out.String())
	if err := report.Err(); err == nil || err.Error() != "2 problems" {
		t.Errorf("error %v", err)
	}
}

// TestFine: a notice is not a problem, and a report without problems lists the checks.
func TestFine(t *testing.T) {
	report := &Report{}
	report.Add("this machine", Machine(preflight.Host{Memory: 8 << 30, CgroupVersion: 2, GoVersion: "go1.26.6"}, nil)...)
	report.Add("testbed", Findings([]finding.Finding{{Problem: "Pulls failed."}})...)
	var out bytes.Buffer
	if err := report.Write(&out); err != nil {
		t.Error(err)
	}
	golden.Compare(t, "fine.txt", out.String())
	if err := report.Err(); err != nil {
		t.Errorf("error %v", err)
	}
}
