package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/proof"
)

func TestWrongUseOfMutate(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no verb", []string{"mutate"}, "name a command"},
		{"a bug for a verb", []string{"mutate", "volume-lost"}, `unknown command "volume-lost"`},
		{"no bug", []string{"mutate", "plant"}, "usage: testbed mutate plant NAME"},
		{"unknown bug", []string{"mutate", "plant", "rust"}, `unknown planted bug "rust", use one of`},
		{"one of the testbed's own", []string{"mutate", "plant", "hit-as-miss"}, "in the testbed itself"},
		{"unknown bug to prove", []string{"mutate", "prove", "volume-lost", "rust"}, `unknown planted bug "rust"`},
		{"another testbed", []string{"mutate", "prove", "--prefix", "other"}, "not on other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, stderr := run(t, "", tc.args...)
			if code != program.ExitUsage || !strings.Contains(stderr, tc.want) || out != "" {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d and %q", code, out, stderr, program.ExitUsage, tc.want)
			}
		})
	}
}

func TestMutateList(t *testing.T) {
	code, out, _ := run(t, "", "mutate", "list", "--json")
	var listed []proof.Mutant
	if err := json.Unmarshal([]byte(out), &listed); err != nil || code != program.ExitFine || len(listed) != len(proof.All()) {
		t.Errorf("exit code %d, error %v, %d bugs", code, err, len(listed))
	}
	if code, out, _ = run(t, "", "mutate", "list"); code != program.ExitFine || !strings.Contains(out, "volume-lost") {
		t.Errorf("exit code %d, output %q", code, out)
	}
}
