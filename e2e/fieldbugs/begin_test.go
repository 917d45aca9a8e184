package fieldbugs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
)

// TestMissingMirrors: an address of before is not the one of now, and a node that is not there has no mirror.
func TestMissingMirrors(t *testing.T) {
	for name, test := range map[string]struct{ from, to, want string }{
		"all is there":                 {"", "", ""},
		"an old address":               {`"hosts": ["http://10.96.0.5:5000"]}]}]}`, `"hosts": ["http://10.96.0.4:5000"]}]}]}`, `worker2 asks "http://10.96.0.4:5000" for alpha`},
		"no address":                   {`"hosts": ["http://10.96.0.5:5000"]}]},`, `"hosts": []}]},`, `worker asks "" for alpha`},
		"an upstream with a like name": {`[{"upstream": "alpha.upstream.test", "hosts"`, `[{"upstream": "alpha.upstream.test.example", "hosts"`, `worker asks ""`},
		"a lost node":                  {`"shoot-worker2"`, `"shoot-worker3"`, "the testbed has no node worker2"},
		"a node that is not ready":     {`"shoot-worker2", "ready": true`, `"shoot-worker2", "ready": false`, "worker2 is not ready"},
		"no extension":                 {`"type": "registry-cache"`, `"type": "other"`, "the Extension names no cache"},
	} {
		t.Run(name, func(t *testing.T) {
			var status kind.ShootStatus
			if err := json.Unmarshal([]byte(strings.Replace(begun, test.from, test.to, 1)), &status); err != nil {
				t.Fatal(err)
			}
			missing, err := missingMirrors(status)
			if err != nil || (len(missing) > 0) != (test.want != "") || !strings.Contains(strings.Join(missing, "; "), test.want) {
				t.Errorf("%q, %v; want %q", missing, err, test.want)
			}
		})
	}
	if _, err := missingMirrors(kind.ShootStatus{Extensions: []kind.ExtensionStatus{{Type: "registry-cache", ProviderStatus: json.RawMessage(`{`)}}}); err == nil {
		t.Error("a status that cannot be read is no status without caches")
	}
}
