package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

func TestShootStatusWrite(t *testing.T) {
	shoot := gardenlet.Shoot()
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(true)}
	shoot.Status.IsHibernated = true
	shoot.Status.LastOperation = lastOperation("Reconcile", "Succeeded", "")
	dead := NewShoot(nil, "")
	dead.Problems = []string{"seed: the API server does not answer"}
	for _, tc := range []struct {
		name   string
		status *Shoot
	}{
		{"hibernated", NewShoot(shoot, gardenlet.StagePresent)}, {"absent", NewShoot(nil, gardenlet.StageAbsent)}, {"dead", dead},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tc.status.Write(&out); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "shoot-status-"+tc.name+".txt", out.Bytes())
		})
	}
}

func TestShootStatusJSON(t *testing.T) {
	for name, status := range map[string]*Shoot{"nothing": NewShoot(nil, "")} {
		encoded, err := json.MarshalIndent(status, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "shoot-status-"+name+".json", append(encoded, '\n'))
	}
}

// report is what an extension adds to a status.
type report struct {
	Extra string `json:"extra,omitempty"`
}

func (r report) Write(w io.Writer, _ bool) { fmt.Fprintln(w, "  "+r.Extra) }

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
