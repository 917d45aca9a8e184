package gardener

import (
	"os"
	"strings"
	"testing"
)

func TestVersionEqualsGoMod(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "github.com/gardener/gardener "+Version+"\n") {
		t.Errorf("go.mod does not require github.com/gardener/gardener %s: set Version to what it requires", Version)
	}
}
