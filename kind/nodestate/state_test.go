package nodestate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// run runs Command with another state file.
func run(t *testing.T, file string) string {
	t.Helper()
	command := Command()
	output, err := exec.CommandContext(t.Context(), command[0], command[1], strings.ReplaceAll(command[2], nodeconfig.StateFile, file)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

func TestState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	if state, err := Parse(run(t, file)); err != nil || state.Dead() != "" || len(state.Upstream) > 0 {
		t.Errorf("without a file: %+v, %v", state, err)
	}
	if err := os.WriteFile(file, []byte("a.test direct http://10.0.0.1:5000 answers 503\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	state, err := Parse(run(t, file))
	if err != nil || state.Dead() != "" || len(state.Upstream) != 1 || state.Upstream[0].String() != "direct: http://10.0.0.1:5000 answers 503" {
		t.Errorf("got %+v, %v", state, err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if state, err := Parse(run(t, file)); err != nil || !strings.HasPrefix(state.Dead(), "its loop is dead: the last round was 1h0m") {
		t.Errorf("got %q, %v", state.Dead(), err)
	}
	for _, text := range []string{"x\n", "1\nx\n"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
