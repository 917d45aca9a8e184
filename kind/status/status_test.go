package status

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// report is what an extension adds to a status.
type report string

func (r report) Write(w io.Writer) { fmt.Fprintln(w, "  "+string(r)) }

// TestReports: the table contains the rows of the reports.
func TestReports(t *testing.T) {
	var out bytes.Buffer
	status := Testbed{Clusters: []Cluster{{Role: "shoot", Nodes: []Node{{Name: "a", Report: report("of the node")}}}}, Report: report("of the testbed")}
	if err := status.Write(&out); err != nil || !strings.Contains(out.String(), "a   \n  of the node\n") || !strings.Contains(out.String(), "  of the testbed\n") {
		t.Errorf("%v:\n%s", err, &out)
	}
}
