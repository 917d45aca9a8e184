package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func TestAuditPolicyFile(t *testing.T) {
	config := Config{Name: "seed", Kubeconfig: filepath.Join(t.TempDir(), "seed.kubeconfig")}
	if err := writeAuditPolicy(config); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(auditDir(config)); !os.IsNotExist(err) {
		t.Errorf("a policy was written without audited groups: %v", err)
	}
	config.Audited = []string{"system:serviceaccounts:some"}
	if err := writeAuditPolicy(config); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(auditMount(config).HostPath, auditPolicyName))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "audit-policy.yaml", string(got))
}

func TestParseAuditLog(t *testing.T) {
	const first = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"list","user":{"username":"someone"},` +
		`"objectRef":{"resource":"nodes"},"responseStatus":{"metadata":{},"code":403}}` + "\n"
	for name, test := range map[string]struct {
		log    string
		events int
		fails  bool
	}{
		"nothing":                 {"", 0, false},
		"two events":              {first + first, 2, false},
		"an incomplete last line": {first + `{"kind":"Ev`, 1, false},
		"garbage":                 {first + "no JSON\n", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := parseAuditLog([]byte(test.log))
			if len(events) != test.events || (err != nil) != test.fails {
				t.Fatalf("%d events, error %v", len(events), err)
			}
			for _, event := range events {
				if event.User.Username != "someone" || event.ObjectRef.Resource != "nodes" || event.ResponseStatus.Code != 403 {
					t.Errorf("read as %+v", event)
				}
			}
		})
	}
}
