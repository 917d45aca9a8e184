package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

func TestValidateComparesWithTheOldShoot(t *testing.T) {
	slow, fast := `[{upstream: a.test, volume: {storageClassName: slow}}]`, `[{upstream: a.test, volume: {storageClassName: fast}}]`
	old := write(t, "old.yaml", shootNamed("b", good)+"---\n"+shootNamed("a", fast))
	file := write(t, "new.yaml", shootNamed("a", slow))
	code, out, _ := validate(t, "", "-f", file, "--old", old)
	if code != program.ExitFailed || !strings.HasPrefix(out, "spec.extensions[1].providerConfig.caches[0].volume.storageClassName: ") {
		t.Errorf("exit code %d, %q", code, out)
	}
	if code, out, notes := validate(t, shootNamed("z", fast), "-f", file, "--old", "-"); code != program.ExitFine || !strings.Contains(notes, "Shoot garden-dev/a is not in -") {
		t.Errorf("exit code %d, %q, %q", code, out, notes)
	}
	if code, out, _ := validate(t, shootNamed("a", bad), "-f", "-", "--old", write(t, "same.yaml", shootNamed("a", bad))); code != program.ExitFine {
		t.Errorf("a Shoot that was already invalid: exit code %d, %q", code, out)
	}
}

func TestValidateReadsSecrets(t *testing.T) {
	const path = "spec.extensions[1].providerConfig.caches[0].secretReferenceName: "
	shoot := shootNamed("a", private, resources)
	folder := filepath.Dir(write(t, "secret.yaml", secretNamed("s", credentials)))
	mutable := filepath.Dir(write(t, "secret.json", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"username":"dQ==","password":"cA=="}}`))
	empty := filepath.Dir(write(t, "secret.txt", secretNamed("s", credentials)))
	for name, test := range map[string]struct {
		stdin, folder string
		code          int
		out, notes    string
	}{
		"of the same input":     {shoot + "---\n" + secretNamed("s", credentials), "", program.ExitFine, "", ""},
		"of the folder":         {shoot, folder, program.ExitFine, "", ""},
		"mutable, no namespace": {shoot, mutable, program.ExitFailed, path + "Invalid value: the Secret garden-dev/s must be immutable", ""},
		"missing":               {shoot, "", program.ExitFine, "", "the Secret garden-dev/s is in no file: check skipped"},
		"not in the folder":     {shoot, empty, program.ExitFailed, path + `Invalid value: "creds": refers to the Secret garden-dev/s, which does not exist`, ""},
		"of another namespace":  {shoot + "---\n" + strings.ReplaceAll(secretNamed("s", credentials), "garden-dev", "other"), empty, program.ExitFailed, path, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"-f", "-"}
			if test.folder != "" {
				args = append(args, "--resources", test.folder)
			}
			code, out, notes := validate(t, test.stdin, args...)
			if code != test.code || !strings.HasPrefix(out, test.out) || test.out == "" && out != "" || !strings.Contains(notes, test.notes) {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %+v", code, out, notes, test)
			}
		})
	}
}
