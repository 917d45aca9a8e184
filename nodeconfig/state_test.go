package nodeconfig_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestParseState(t *testing.T) {
	got, err := nodeconfig.ParseState("7\n[::1]:5000 direct http://[fd00::1]:5000 does not answer (000)\na.test stuck x\n")
	want := []nodeconfig.State{
		{Upstream: "[::1]:5000", Route: nodeconfig.Direct, Reason: "http://[fd00::1]:5000 does not answer (000)"},
		{Upstream: "a.test", Route: nodeconfig.Stuck, Reason: "x"},
	}
	if err != nil || got.Age != 7*time.Second || !slices.Equal(got.Upstreams, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if text, want := got.Upstreams[1].String(), "stuck: x"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if got, err := nodeconfig.ParseState(""); len(got.Upstreams) != 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"\n", "a.test", "a.test mirror", "a.test mirror \n", " mirror x\n", "a.test other x\n", "a.test mirror x\n\nb"} {
		if got, err := nodeconfig.ParseState("7\n" + text); err == nil {
			t.Errorf("%q is accepted as %+v", text, got)
		}
	}
}

// readState runs StateCommand with another state file.
func readState(t *testing.T, file string) string {
	t.Helper()
	command := nodeconfig.StateCommand()
	output, err := exec.CommandContext(t.Context(), command[0], command[1], strings.ReplaceAll(command[2], nodeconfig.StateFile, file)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

func TestNodeState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	if state, err := nodeconfig.ParseState(readState(t, file)); err != nil || state.Dead() != "" || len(state.Upstreams) != 0 {
		t.Errorf("without a file: %+v, %v", state, err)
	}
	if err := os.WriteFile(file, []byte("a.test direct http://10.0.0.1:5000 answers 503\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	state, err := nodeconfig.ParseState(readState(t, file))
	if want := "direct: http://10.0.0.1:5000 answers 503"; err != nil || state.Dead() != "" || state.Upstreams[0].String() != want {
		t.Errorf("got %+v, %v", state, err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if state, err := nodeconfig.ParseState(readState(t, file)); err != nil || !strings.HasPrefix(state.Dead(), "its loop is dead: the last round was 1h0m") {
		t.Errorf("got %q, %v", state.Dead(), err)
	}
	for _, text := range []string{"x\n", "1\nx\n"} {
		if _, err := nodeconfig.ParseState(text); err == nil {
			t.Errorf("%q is accepted", text)
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
