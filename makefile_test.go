package registrycache_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// settings are the variables of a run that have general names.
var settings = []string{"CONFIG", "KEEP", "LANE", "MATRIX", "MUTANT", "REPLACE", "RUN"}

// TestSettingsOfARun: what a shell has set for another program neither plants a bug in `make e2e` nor chooses another testbed.
func TestSettingsOfARun(t *testing.T) {
	t.Parallel()
	t.Run("of the environment", func(t *testing.T) {
		t.Parallel()
		var set []string
		for _, name := range settings {
			set = append(set, name+"=foreign")
		}
		seen, said := settingsSeen(t, append(set, "NODE_IMAGE=stock"))
		if len(seen) != 1 || seen["NODE_IMAGE"] != "stock" {
			t.Errorf("a recipe sees %v, want NODE_IMAGE alone", seen)
		}
		for _, name := range settings {
			if !strings.Contains(said, name) {
				t.Errorf("nothing says that %s is not read: %q", name, said)
			}
		}
	})
	t.Run("of the command line", func(t *testing.T) {
		t.Parallel()
		seen, said := settingsSeen(t, []string{"CONFIG=foreign"}, "CONFIG=e2e/matrix/ipv6.yaml", "RUN=^(a|b)$", "MUTANT=not-atomic")
		want := map[string]string{"CONFIG": "e2e/matrix/ipv6.yaml", "RUN": "^(a|b)$", "MUTANT": "not-atomic"}
		if !maps.Equal(seen, want) || said != "" {
			t.Errorf("a recipe sees %v, want %v; said: %q", seen, want, said)
		}
	})
}

// TestExitCodeOfEverything: what is red stays red, whatever the matrix cannot have, and the matrix does not begin where nothing can.
func TestExitCodeOfEverything(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		lane, matrix string
		want         string // what make says of the exit code
		began        bool   // the matrix
	}{
		{"0", "0", "", true},
		{"0", "1", "Error 1", true},
		{"0", "3", "Error 3", true},
		{"1", "0", "Error 1", true},
		{"1", "3", "Error 1", true},
		{"2", "0", "Error 2", false},
		{"3", "0", "Error 3", false},
	} {
		t.Run("lane "+tc.lane+", matrix "+tc.matrix, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for path, code := range map[string]string{"bin/e2e.test": tc.lane, "e2e/matrix/run": tc.matrix} {
				path = filepath.Join(folder, path)
				script := "#!/bin/sh\ntouch " + path + ".began\nexit " + code + "\n"
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), writeProgram(path, script)); err != nil {
					t.Fatal(err)
				}
			}
			_, said, err := runMake(t, folder, nil, "bin/e2e.test: ;\n", "INNER_LOOP=", "e2e-all")
			if (err == nil) != (tc.want == "") || !strings.Contains(said, tc.want) {
				t.Errorf("%v: %s", err, said)
			}
			if _, err := os.Stat(filepath.Join(folder, "e2e/matrix/run.began")); (err == nil) != tc.began {
				t.Errorf("the matrix: %v", err)
			}
		})
	}
}

// writeProgram writes a script that can be run: a process that another test starts meanwhile would hold the file open for writing, until
// it is a program of its own, and the kernel runs no such file (go.dev/issue/22315).
func writeProgram(path, script string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(script), 0o755)
}

// settingsSeen returns the variables of a run that are set in a recipe, and what make says about them.
func settingsSeen(t *testing.T, environment []string, arguments ...string) (seen map[string]string, said string) {
	t.Helper()
	output, said, err := runMake(t, ".", environment, "show:\n\t$(note-ignored)\n\t@env\n", append(arguments, "show")...)
	if err != nil {
		t.Fatalf("make: %v: %s", err, said)
	}
	seen = map[string]string{}
	for line := range strings.Lines(output) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if value != "" && (name == "NODE_IMAGE" || slices.Contains(settings, name)) {
			seen[name] = value
		}
	}
	return seen, said
}

// runMake runs make in a folder by the Makefile and the rules after it, with nothing else in the environment.
func runMake(t *testing.T, folder string, environment []string, rules string, arguments ...string) (output, said string, err error) {
	t.Helper()
	makefile, err := os.ReadFile("Makefile") // the test's cache would not notice what make reads
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--directory", folder, "--file", "-"}, arguments...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(makefile)+rules), &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}
