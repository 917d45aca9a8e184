package nodeconfig_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestParseState(t *testing.T) {
	got, err := nodeconfig.ParseState("[::1]:5000 direct http://[fd00::1]:5000 does not answer (000)\na.test stuck x\n")
	want := []nodeconfig.State{
		{Upstream: "[::1]:5000", Route: nodeconfig.Direct, Reason: "http://[fd00::1]:5000 does not answer (000)"},
		{Upstream: "a.test", Route: nodeconfig.Stuck, Reason: "x"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if text, want := got[1].String(), "stuck: x"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if got, err := nodeconfig.ParseState(""); len(got) != 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"\n", "a.test", "a.test mirror", "a.test mirror \n", " mirror x\n", "a.test other x\n", "a.test mirror x\n\nb"} {
		if got, err := nodeconfig.ParseState(text); err == nil {
			t.Errorf("%q is accepted as %+v", text, got)
		}
	}
}

// The unit must create the directory in which the script writes its state.
func TestUnitCreatesRunDir(t *testing.T) {
	if unit := nodeconfig.Unit(nil, 0); !strings.Contains(unit, "\nRuntimeDirectory="+path.Base(nodeconfig.RunDir)+"\n") {
		t.Errorf("the unit is\n%s", unit)
	}
	if !strings.Contains(nodeconfig.Script(), "run_dir=${RUN_DIR:-"+nodeconfig.RunDir+"}") {
		t.Error("the script has another directory")
	}
}
