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
		{"scenarios on another testbed", []string{"test", "--prefix", "other"}, "omit --prefix"},
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
	for _, flags := range [][]string{{"--json"}, {"-o", "json"}, {"--output=json"}} {
		code, out, _ := run(t, "", append([]string{"mutate", "list"}, flags...)...)
		var listed []proof.Mutant
		if err := json.Unmarshal([]byte(out), &listed); err != nil || code != program.ExitFine || len(listed) != len(proof.All()) {
			t.Errorf("%s: exit code %d, error %v, %d bugs", flags, code, err, len(listed))
		}
	}
	code, out, stderr := run(t, "", "mutate", "list", "-o", "yaml")
	if code != program.ExitUsage || out != "" || !strings.Contains(stderr, "want json") {
		t.Errorf("-o yaml: exit code %d, output %q, standard error %q", code, out, stderr)
	}
	if code, out, _ = run(t, "", "mutate", "list"); code != program.ExitFine || !strings.Contains(out, "volume-lost") {
		t.Errorf("exit code %d, output %q", code, out)
	}
}
