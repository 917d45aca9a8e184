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

// TestEverything: what is red stays red, whatever the matrix cannot have, the matrix does not begin where nothing can, and
// no testbed is left but one that is to be kept, or that may be somebody's: then that is said.
func TestEverything(t *testing.T) {
	t.Parallel()
	const interrupted = "kill -TERM $PPID; exit 1"
	for _, tc := range []struct {
		lane, matrix string
		settings     []string
		want         string // what make says of the exit code
		began        bool   // the matrix
		removed      bool   // the testbed, by e2e-all itself
	}{
		{"exit 0", "exit 0", nil, "", true, false},
		{"exit 0", "exit 1", nil, "Error 1", true, false},
		{"exit 0", "exit 2", nil, "Error 2", true, true},
		{"exit 0", "exit 3", nil, "Error 3", true, false},
		{"exit 0", interrupted, nil, "Error 130", true, true},
		{"exit 1", "exit 0", nil, "Error 1", true, false},
		{"exit 1", "exit 3", nil, "Error 1", true, false},
		{"exit 2", "exit 0", nil, "Error 2", false, false},
		{"exit 3", "exit 0", nil, "Error 3", false, false},
		{interrupted, "exit 0", nil, "Error 130", false, true},
		{interrupted, "exit 0", []string{"KEEP=1"}, "Error 130", false, false},
	} {
		t.Run(strings.Join(append([]string{"lane " + tc.lane, "matrix " + tc.matrix}, tc.settings...), ", "), func(t *testing.T) {
			t.Parallel()
			folder := programs(t, map[string]string{"bin/e2e.test": tc.lane, "e2e/matrix/run": tc.matrix, "bin/testbed": "exit 3"})
			_, said, err := runMake(t, folder, nil, "bin/e2e.test: ;\n", append(tc.settings, "INNER_LOOP=", "e2e-all")...)
			if (err == nil) != (tc.want == "") || !strings.Contains(said, tc.want) {
				t.Errorf("%v: %s", err, said)
			}
			if kept := strings.Contains(said, "`make down` removes it"); kept != (tc.lane == "exit 2" || tc.lane == "exit 3") {
				t.Errorf("says that a testbed may be there: %t", kept)
			}
			for path, want := range map[string]bool{"e2e/matrix/run": tc.began, "bin/testbed": tc.removed} {
				if began(folder, path) != want {
					t.Errorf("%s has run: %t, want %t", path, !want, want)
				}
			}
		})
	}
}

// TestInnerLoopIsBuilt: the scenario inner-loop finds what it runs wherever it may be among those that are asked for.
func TestInnerLoopIsBuilt(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]bool{
		"LANE=fast": false, "LANE=full": true, "RUN=^inner-loop$": true, "RUN=^inner": true, "RUN=^(join|inner.*)$": true, "RUN=^join$": false,
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			folder := programs(t, map[string]string{"bin/e2e.test": "exit 0"})
			environment := []string{"RUN=inner", "LANE=full"} // which do not count
			output, said, err := runMake(t, folder, environment, "bin/e2e.test: ;\nneeded: ; @echo $@\n", setting, "INNER_LOOP=needed", "e2e")
			if err != nil || strings.Contains(output, "needed") != want {
				t.Errorf("make says %q and %q, error %v; want it built: %t", output, said, err, want)
			}
		})
	}
}

// programs makes a folder with these scripts, by their paths in it.
func programs(t *testing.T, scripts map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for path, script := range scripts {
		path = filepath.Join(folder, path)
		script = "#!/bin/sh\ntouch \"$0.began\"\n" + script + "\n"
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), writeProgram(path, script)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// began tells whether one of the programs has run.
func began(folder, path string) bool {
	_, err := os.Stat(filepath.Join(folder, path+".began"))
	return err == nil
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
