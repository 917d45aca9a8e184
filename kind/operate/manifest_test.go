package operate_test

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/operate"
)

const (
	shoot = `apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: one, namespace: garden-dev}
spec:
  purpose: testing
`
	secret = `apiVersion: v1
kind: Secret
metadata: {name: login, namespace: garden-dev}
data: {username: cm9ib3Q=, password: b2xk}
stringData: {password: hunter2}
`
	next = "---\n"
)

func TestRead(t *testing.T) {
	read, err := operate.ReadManifest("shoot.yaml", strings.NewReader("# nothing\n---\n"+secret+next+shoot+next))
	if err != nil {
		t.Fatal(err)
	}
	if read.Shoot.Name != "one" || *read.Shoot.Spec.Purpose != "testing" {
		t.Errorf("shoot %+v", read.Shoot)
	}
	if len(read.Secrets) != 1 {
		t.Fatalf("%d secrets, want 1", len(read.Secrets))
	}
	got := read.Secrets[0]
	if string(got.Data["username"]) != "robot" || string(got.Data["password"]) != "hunter2" || got.StringData != nil {
		t.Errorf("stringData is not written over data: %q %q", got.Data, got.StringData)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tc := range []struct{ name, content, want string }{
		{"nothing", "", "shoot.yaml has no Shoot"},
		{"Secrets only", secret, "has no Shoot"},
		{"two Shoots", shoot + next + shoot, "document 2 of shoot.yaml: a second Shoot, one"},
		{"an unknown field", shoot + "  extension: []\n", `document 1 of shoot.yaml: unknown field "spec.extension"`},
		{"an unknown field of a list", shoot + "  extensions: [{type: a}, {type: b, config: {}}]\n", `unknown field "spec.extensions[1].config"`},
		{"a field twice", shoot + "  purpose: evaluation\n", "purpose"},
		{"an unknown field of a Secret", shoot + next + secret + "text: {}\n", `document 2 of shoot.yaml: unknown field "text"`},
		{"another type", shoot + "  hibernation: {enabled: often}\n", "hibernation.enabled"},
		{"another version", strings.Replace(shoot, "v1beta1", "v1alpha1", 1), "want a Shoot of apiVersion core.gardener.cloud/v1beta1"},
		{"another kind", shoot + next + "apiVersion: v1\nkind: ConfigMap\n", "document 2 of shoot.yaml: want a Shoot or a Secret, not a ConfigMap"},
		{"an unknown kind", "apiVersion: example.org/v1\nkind: Thing\n", "want a Shoot"},
		{"no kind", "metadata: {name: x}\n", "want a Shoot"},
		{"no YAML", "spec: [\n", "not YAML"},
		{"a Secret twice", shoot + next + secret + next + secret, "secret login appears twice"},
		{"a Secret without name", shoot + next + "apiVersion: v1\nkind: Secret\n", "a Secret has no metadata.name"},
		{"a Secret of another namespace", strings.Replace(shoot, "garden-dev", "garden-x", 1) + next + secret,
			`secret login is in namespace "garden-dev", the Shoot in "garden-x"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := operate.ReadManifest("shoot.yaml", strings.NewReader(tc.content))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

// TestErrorsQuoteNoSecret: errors may end up in the log of a CI job.
func TestErrorsQuoteNoSecret(t *testing.T) {
	for _, line := range []string{
		"stringData: {password: [hunter2]}", "data: {password: hunter2!}", "stringData: {password: 42hunter2, password: b}",
		"stringData: {password: {hunter2: x}}", "stringData:\n  password: hunter2\n bad", "stringData: hunter2",
	} {
		_, err := operate.ReadManifest("x", strings.NewReader("apiVersion: v1\nkind: Secret\nmetadata: {name: login}\n"+line+"\n"))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", line, err)
		}
	}
}
