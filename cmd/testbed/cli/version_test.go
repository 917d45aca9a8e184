package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

func TestVersion(t *testing.T) {
	version = "v1.2.3"
	t.Cleanup(func() { version = "" })
	code, out, _ := run(t, "", "version")
	if code != program.ExitFine || !strings.HasPrefix(out, "testbed     v1.2.3\ngo          go1.") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	code, out, _ = run(t, "", "version", "-o", "json")
	var versions map[string]string
	if err := json.Unmarshal([]byte(out), &versions); code != program.ExitFine || err != nil {
		t.Fatalf("exit code %d, %v: %q", code, err, out)
	}
	if versions["gardener"] != gardener.Version || !strings.HasPrefix(versions["kubernetes"], "v1.") || !strings.HasPrefix(versions["containerd"], "v2.") {
		t.Errorf("versions %v", versions)
	}
}
