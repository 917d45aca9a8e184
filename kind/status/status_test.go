package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// report is what an extension adds to a status.
type report struct {
	Extra string `json:"extra,omitempty"`
}

func (r report) Write(w io.Writer) { fmt.Fprintln(w, "  "+r.Extra) }

// TestReports: the fields of a report join those of the status, and its rows those of the table.
func TestReports(t *testing.T) {
	for want, node := range map[string]Node{
		`{"name":"a","registered":false,"ready":false}`:               {Name: "a"},
		`{"name":"b","registered":false,"ready":false,"extra":"x"}`:   {Name: "b", Report: report{"x"}},
		`{"name":"c","registered":false,"ready":false,"problem":"p"}`: {Name: "c", Problem: "p", Report: report{}},
	} {
		if got, err := json.Marshal(node); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	var out bytes.Buffer
	status := Testbed{Clusters: []Cluster{{Role: "shoot", Nodes: []Node{{Name: "a", Report: report{"of the node"}}}}}, Report: report{"of the testbed"}}
	if err := status.Write(&out); err != nil || !strings.Contains(out.String(), "a   \n  of the node\n") || !strings.Contains(out.String(), "  of the testbed\n") {
		t.Errorf("%v:\n%s", err, &out)
	}
}
