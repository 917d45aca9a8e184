package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// validate runs the command. It returns the exit code, standard output and standard error.
func validate(t *testing.T, stdin string, args ...string) (code int, out, notes string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	std := program.Streams{Out: &stdout, Err: &stderr}
	root := newRootCommand(std)
	verb, _, err := root.Find([]string{"validate"})
	if err != nil {
		t.Fatal(err)
	}
	root.RemoveCommand(verb)
	root.AddCommand(newValidateCommand(std, strings.NewReader(stdin)))
	code = program.Run(t.Context(), root, std, append([]string{"validate"}, args...))
	return code, stdout.String(), stderr.String()
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shootNamed returns a Shoot with workers. The arguments caches and more are YAML.
func shootNamed(name, caches string, more ...string) string {
	return `apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: ` + name + `, namespace: garden-dev}
spec:
  provider: {workers: [{name: w}]}
` + strings.Join(more, "") + `  extensions:
  - type: shoot-dns-service
  - type: registry-cache
    providerConfig:
      apiVersion: registry.extensions.gardener.cloud/v1alpha3
      kind: RegistryConfig
      caches: ` + caches + "\n"
}

const (
	good = `[{upstream: a.test}]`
	bad  = `[{upstream: A.test}]`

	resources = "  resources: [{name: creds, resourceRef: {apiVersion: v1, kind: Secret, name: s}}]\n"
	private   = `[{upstream: a.test, secretReferenceName: creds}]`
)

func secretNamed(name, more string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: garden-dev}\n" + more
}

const credentials = "immutable: true\nstringData: {username: u}\ndata: {password: cA==}\n"

func TestValidateExitCodes(t *testing.T) {
	good, bad := write(t, "good.yaml", shootNamed("a", good)), write(t, "bad.yaml", shootNamed("b", bad))
	for name, test := range map[string]struct {
		stdin string
		args  []string
		code  int
		out   string // prefix; "" for no output
		notes string // substring
	}{
		"good":              {"", []string{"-f", good}, program.ExitFine, "", "✓ Shoot garden-dev/a: valid"},
		"bad":               {"", []string{"-f", bad}, program.ExitFailed, "spec.extensions[1].providerConfig.caches[0].upstream: Invalid value", "✗ Shoot garden-dev/b: 1 mistake"},
		"both":              {"", []string{"-f", good, "-f", bad}, program.ExitFailed, "spec.extensions[1].providerConfig.caches[0].upstream: ", "valid"},
		"standard input":    {shootNamed("c", `[]`), []string{"-f", "-"}, program.ExitFailed, "spec.extensions[1].providerConfig.caches: Required value", ""},
		"documents":         {shootNamed("c", `[{upstream: c.test}]`) + "---\n" + shootNamed("d", `[]`), []string{"-f", "-"}, program.ExitFailed, "spec.extensions[1].providerConfig.caches: Required", "✓ Shoot garden-dev/c"},
		"JSON list":         {`{"kind":"List","apiVersion":"v1","items":[{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"x"}}]}`, []string{"-f", "-"}, program.ExitFine, "", "✓ Shoot x: valid"},
		"another kind too":  {"kind: ConfigMap\napiVersion: v1\n---\n" + shootNamed("c", `[{upstream: c.test}]`), []string{"-f", "-"}, program.ExitFine, "", "skipped a ConfigMap of apiVersion v1"},
		"a newer field":     {shootNamed("c", `[{upstream: c.test}]`, "  invented: later\n"), []string{"-f", "-"}, program.ExitFine, "", ""},
		"comma in a name":   {"", []string{"-f", write(t, `a,"b.yaml`, shootNamed("c", `[{upstream: c.test}]`))}, program.ExitFine, "", "✓ Shoot garden-dev/c"},
		"no file named":     {"", nil, program.ExitUsage, "", "name a file"},
		"no such file":      {"", []string{"-f", "absent.yaml"}, program.ExitUsage, "", "absent.yaml"},
		"input twice":       {shootNamed("c", `[{upstream: c.test}]`), []string{"-f", "-", "--old", "-"}, program.ExitUsage, "", "standard input can be read only once"},
		"input in two -f":   {shootNamed("c", `[{upstream: c.test}]`), []string{"-f", "-", "-f", "-"}, program.ExitUsage, "", "standard input can be read only once"},
		"no such folder":    {"", []string{"-f", good, "--resources", "absent"}, program.ExitUsage, "", "absent"},
		"no such old file":  {"", []string{"-f", good, "--old", "absent.yaml"}, program.ExitUsage, "", "absent.yaml"},
		"no Shoot":          {"kind: ConfigMap\napiVersion: v1\n", []string{"-f", "-"}, program.ExitUsage, "", "no Shoot of apiVersion core.gardener.cloud/v1beta1"},
		"no document":       {"# nothing\n", []string{"-f", "-"}, program.ExitUsage, "", "no Shoot of apiVersion"},
		"no YAML":           {"a: b: c\n", []string{"-f", "-"}, program.ExitUsage, "", "document 1 of standard input is not YAML"},
		"no object":         {"- a\n", []string{"-f", "-"}, program.ExitUsage, "", "not a Kubernetes object"},
		"a key twice":       {"kind: Shoot\nkind: Shoot\n", []string{"-f", "-"}, program.ExitUsage, "", "kind"},
		"unknown flag":      {"", []string{"--file", good}, program.ExitUsage, "", "unknown flag"},
		"argument":          {"", []string{good}, program.ExitUsage, "", "unknown command"},
		"Shoot of old API":  {"apiVersion: core.gardener.cloud/v1alpha1\nkind: Shoot\n", []string{"-f", "-"}, program.ExitUsage, "", "skipped a Shoot of apiVersion core.gardener.cloud/v1alpha1"},
		"wrong type inside": {"apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nspec: []\n", []string{"-f", "-"}, program.ExitUsage, "", "document 1 of standard input"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, notes := validate(t, test.stdin, test.args...)
			if code != test.code || !strings.HasPrefix(out, test.out) || test.out == "" && out != "" || !strings.Contains(notes, test.notes) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %+v", code, out, notes, test)
			}
		})
	}
}
