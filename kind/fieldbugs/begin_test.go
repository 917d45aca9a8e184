package fieldbugs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gardener-extensions/registry-cache/kind/status"
)

// TestMissingMirrors checks that a problem is reported for a worker that is missing, is not ready,
// or does not have the current address of a cache.
func TestMissingMirrors(t *testing.T) {
	for name, test := range map[string]struct{ from, to, want string }{
		"all is there":                 {"", "", ""},
		"an old address":               {`"hosts": ["http://10.96.0.5:5000"]}]}]}`, `"hosts": ["http://10.96.0.4:5000"]}]}]}`, `worker2 uses "http://10.96.0.4:5000" for alpha`},
		"no address":                   {`"hosts": ["http://10.96.0.5:5000"]}]},`, `"hosts": []}]},`, `worker uses "" for alpha`},
		"an upstream with a like name": {`[{"upstream": "alpha.upstream.test", "hosts"`, `[{"upstream": "alpha.upstream.test.example", "hosts"`, `worker uses ""`},
		"a lost node":                  {`"shoot-worker2"`, `"shoot-worker3"`, "the testbed has no node worker2"},
		"a node that is not ready":     {`"shoot-worker2", "ready": true`, `"shoot-worker2", "ready": false`, "worker2 is not ready"},
		"no extension":                 {`"type": "registry-cache"`, `"type": "other"`, "the status of the Extension has no cache"},
	} {
		t.Run(name, func(t *testing.T) {
			var status status.Shoot
			if err := json.Unmarshal([]byte(strings.Replace(readyShoot, test.from, test.to, 1)), &status); err != nil {
				t.Fatal(err)
			}
			missing, err := missingMirrors(status)
			if err != nil || (len(missing) > 0) != (test.want != "") || !strings.Contains(strings.Join(missing, "; "), test.want) {
				t.Errorf("%q, %v; want %q", missing, err, test.want)
			}
		})
	}
	if _, err := missingMirrors(status.Shoot{Extensions: []status.Extension{{Type: "registry-cache", ProviderStatus: json.RawMessage(`{`)}}}); err == nil {
		t.Error("a status that cannot be read is no status without caches")
	}
}

// TestPendingCaches checks that caches are pending while the current configuration is not applied,
// and while pods of the previous configuration are left.
func TestPendingCaches(t *testing.T) {
	for name, test := range map[string]struct{ resource, caches, want string }{
		"all run": {applied, rolledOut, ""},
		"not applied yet": {
			strings.Replace(applied, `"generation": 2`, `"generation": 3`, 1), rolledOut, "not applied: observed generation of managed resource",
		},
		"cannot be applied":              {strings.Replace(applied, "True", "False", 1), rolledOut, "not applied: condition"},
		"a pod of the previous revision": {applied, strings.Replace(rolledOut, `"updatedReplicas": 1`, `"updatedReplicas": 0`, 1), "not rolled out: cache registry-alpha: "},
		"a pod that starts":              {applied, strings.Replace(rolledOut, `"readyReplicas": 1`, `"readyReplicas": 0`, 1), "not rolled out: cache registry-alpha: "},
		"no cache":                       {applied, `{"items": []}`, "the shoot has no cache"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{getResource: test.resource, getCaches: test.caches}
			pending, err := rigOf(func(line string) string { return answers[line] }).pendingCaches(t.Context(), "shoot--local--local")
			if err != nil || (pending == "") != (test.want == "") || !strings.HasPrefix(pending, test.want) {
				t.Errorf("%q, %v; want %q", pending, err, test.want)
			}
		})
	}
	if _, err := rigOf(func(string) string { return "no JSON" }).pendingCaches(t.Context(), "shoot--local--local"); err == nil {
		t.Error("an answer that cannot be read is no cache that runs")
	}
}

// TestBeginAwaitsCaches checks that begin waits until the pods of the previous Shoot are replaced,
// and that it tolerates an API server that fails once.
func TestBeginAwaitsCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		c := &console{}
		execute := func(ctx context.Context, args []string, out, prose io.Writer) int {
			if strings.Join(args, " ") != getCaches {
				return c.execute(ctx, args, out, prose)
			}
			looks++
			switch looks {
			case 1:
				fmt.Fprintln(prose, "the server is currently unable to handle the request")
				return 1
			case 2:
				fmt.Fprintln(out, strings.Replace(rolledOut, `"updatedReplicas": 1`, `"updatedReplicas": 0`, 1))
			default:
				fmt.Fprintln(out, rolledOut)
			}
			return 0
		}
		r := &Rig{execute: execute, transcript: io.Discard, result: &Result{}}
		if err := r.begin(t.Context(), Bug{ID: "s0"}); err != nil || looks != 3 {
			t.Errorf("%d looks, %v; want 3", looks, err)
		}
	})
}
