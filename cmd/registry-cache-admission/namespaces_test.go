package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// moveTo moves the documents from garden-dev to another namespace, or to none for "".
func moveTo(namespace, documents string) string {
	if namespace == "" {
		return strings.ReplaceAll(documents, ", namespace: garden-dev", "")
	}
	return strings.ReplaceAll(documents, "garden-dev", namespace)
}

// TestValidateFindsTheOldShootWithoutANamespace: two Shoots with the same name match even if only
// one of them names its namespace. kubectl prints the namespace, but files under version control
// often omit it.
func TestValidateFindsTheOldShootWithoutANamespace(t *testing.T) {
	slow, fast := shootNamed("a", `[{upstream: a.test, volume: {storageClassName: slow}}]`), shootNamed("a", `[{upstream: a.test, volume: {storageClassName: fast}}]`)
	const moved = "spec.extensions[1].providerConfig.caches[0].volume.storageClassName: "
	for name, test := range map[string]struct {
		shoot, old string
		code       int
		out, notes string
	}{
		"neither has one":           {moveTo("", slow), moveTo("", fast), program.ExitFailed, moved, "✗ Shoot a: 1 mistake"},
		"the old one has one":       {moveTo("", slow), fast, program.ExitFailed, moved, "✗ Shoot garden-dev/a: 1 mistake"},
		"the new one has one":       {slow, moveTo("", fast), program.ExitFailed, moved, "✗ Shoot garden-dev/a: 1 mistake"},
		"both are others":           {slow, moveTo("other", fast), program.ExitFine, "", "Shoot garden-dev/a is not in"},
		"its own among others":      {slow, moveTo("other", slow) + "---\n" + moveTo("", slow) + "---\n" + fast, program.ExitFailed, moved, ""},
		"two to choose from":        {moveTo("", slow), fast + "---\n" + moveTo("other", fast), program.ExitUsage, "", "old.yaml: garden-dev/a and other/a match: set the missing metadata.namespace"},
		"one of two without":        {moveTo("", slow), moveTo("", fast) + "---\n" + fast, program.ExitUsage, "", "old.yaml: a and garden-dev/a match: set"},
		"twice the same":            {slow, fast + "---\n" + fast, program.ExitFailed, moved, ""},
		"twice, but different ones": {slow, fast + "---\n" + slow, program.ExitUsage, "", "check Shoot garden-dev/a: look for it in "},
		"nothing after a good one":  {shootNamed("b", bad) + "---\n" + moveTo("", slow), fast + "---\n" + moveTo("other", fast), program.ExitUsage, "", "check Shoot a: "},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, notes := validate(t, test.shoot, "-f", "-", "--old", write(t, "old.yaml", test.old))
			if code != test.code || !strings.HasPrefix(out, test.out) || test.out == "" && out != "" || !strings.Contains(notes, test.notes) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %+v", code, out, notes, test)
			}
		})
	}
}

func TestValidateFindsSecretsWithoutANamespace(t *testing.T) {
	const path = "spec.extensions[1].providerConfig.caches[0].secretReferenceName: "
	shoot, secret, wrong := shootNamed("a", private, resources), secretNamed("s", credentials), secretNamed("s", "stringData: {username: u, password: p}\n")
	for name, test := range map[string]struct {
		shoot, secrets, old string
		code                int
		out, notes          string
	}{
		"neither has one":         {moveTo("", shoot), moveTo("", secret), "", program.ExitFine, "", ""},
		"the Secret has one":      {moveTo("", shoot), secret, "", program.ExitFine, "", ""},
		"the Shoot has one":       {shoot, moveTo("", secret), "", program.ExitFine, "", ""},
		"it is wrong":             {moveTo("", shoot), wrong, "", program.ExitFailed, path + "Invalid value: the Secret garden-dev/s must be immutable", ""},
		"there is none":           {moveTo("", shoot), secretNamed("other", credentials), "", program.ExitFailed, path + `Invalid value: "creds": refers to the Secret s, which does not exist`, ""},
		"its own among others":    {shoot, moveTo("other", wrong) + "---\n" + moveTo("", wrong) + "---\n" + secret, "", program.ExitFine, "", ""},
		"two to choose from":      {moveTo("", shoot), secret + "---\n" + moveTo("other", secret), "", program.ExitUsage, "", "check Shoot a: look for the Secret s: garden-dev/s and other/s match: "},
		"as in the old Shoot":     {moveTo("", shoot), moveTo("other", wrong) + "---\n" + secret, shootNamed("a", good), program.ExitFine, "", ""},
		"twice the same":          {shoot, secret + "---\n" + secret, "", program.ExitFine, "", ""},
		"twice, different ones":   {shoot, secret + "---\n" + wrong, "", program.ExitUsage, "", "look for the Secret garden-dev/s: found twice with different content"},
		"two that nobody needs":   {moveTo("", shootNamed("a", good)), secret + "---\n" + moveTo("other", secret), "", program.ExitFine, "", ""},
		"of another than the old": {moveTo("", shoot), moveTo("other", secret), shootNamed("a", good), program.ExitFailed, path + `Invalid value: "creds": refers to the Secret garden-dev/s`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"-f", "-", "--resources", filepath.Dir(write(t, "secrets.yaml", test.secrets))}
			if test.old != "" {
				args = append(args, "--old", write(t, "old.yaml", test.old))
			}
			code, out, notes := validate(t, test.shoot, args...)
			if code != test.code || !strings.HasPrefix(out, test.out) || test.out == "" && out != "" || !strings.Contains(notes, test.notes) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %+v", code, out, notes, test)
			}
		})
	}
}
