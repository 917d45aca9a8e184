package house

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

// settings are variables of `make e2e` and `make publish` whose names other programs may use as
// well.
var settings = []string{"ALIAS", "CONFIG", "KEEP", "LANE", "MATRIX", "REGISTRY", "RUN"}

// TestSettings: `make e2e` ignores settings in the environment. Settings that are meant for another
// program could choose another testbed.
func TestSettings(t *testing.T) {
	t.Parallel()
	t.Run("environment", func(t *testing.T) {
		t.Parallel()
		var set []string
		for _, name := range settings {
			set = append(set, name+"=other")
		}
		seen, stderr := settingsSeen(t, append(set, "NODE_IMAGE=stock"))
		if len(seen) != 1 || seen["NODE_IMAGE"] != "stock" {
			t.Errorf("a recipe sees %v, want NODE_IMAGE alone", seen)
		}
		for _, name := range settings {
			if !strings.Contains(stderr, name) {
				t.Errorf("no warning that %s is not read: %q", name, stderr)
			}
		}
	})
	t.Run("command line", func(t *testing.T) {
		t.Parallel()
		seen, stderr := settingsSeen(t, []string{"CONFIG=other"}, "CONFIG=e2e/matrix/ipv6.yaml", "RUN=^(a|b)$", "LANE=full")
		want := map[string]string{"CONFIG": "e2e/matrix/ipv6.yaml", "RUN": "^(a|b)$", "LANE": "full"}
		if !maps.Equal(seen, want) || stderr != "" {
			t.Errorf("a recipe sees %v, want %v; standard error: %q", seen, want, stderr)
		}
	})
}

// TestEndToEndAll: e2e-all fails if the lane fails, whatever the matrix returns. The matrix starts
// only if the lane ends with exit code 0 or 1. Without KEEP=1 no testbed remains, except one that
// another process may use: then a message tells how to remove it.
func TestEndToEndAll(t *testing.T) {
	t.Parallel()
	const interrupted = "kill -TERM $PPID; exit 1"
	for _, tc := range []struct {
		lane, matrix string
		settings     []string
		want         string // what make prints about the exit code
		began        bool   // whether the matrix has started
		removed      bool   // whether e2e-all removed the testbed
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
			copyProgram(t, folder, "tools/e2e-all")
			_, stderr, err := runMake(t, folder, nil, "bin/e2e.test: ;\n", append(tc.settings, "INNER_LOOP=", "RELEASE=", "e2e-all")...)
			if (err == nil) != (tc.want == "") || !strings.Contains(stderr, tc.want) {
				t.Errorf("%v: %s", err, stderr)
			}
			if warned := strings.Contains(stderr, "`make down` removes it"); warned != (tc.lane == "exit 2" || tc.lane == "exit 3") {
				t.Errorf("warns that a testbed may exist: %t", warned)
			}
			for path, want := range map[string]bool{"e2e/matrix/run": tc.began, "bin/testbed": tc.removed} {
				if began(folder, path) != want {
					t.Errorf("%s has run: %t, want %t", path, !want, want)
				}
			}
		})
	}
}

// TestInnerLoopIsBuilt: if the scenario inner-loop may run, make builds its programs.
func TestInnerLoopIsBuilt(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]bool{
		"LANE=fast": false, "LANE=full": true, "RUN=^inner-loop$": true, "RUN=^inner": true, "RUN=^(join|inner.*)$": true, "RUN=^join$": false,
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			folder := programs(t, map[string]string{"bin/e2e.test": "exit 0"})
			environment := []string{"RUN=inner", "LANE=full"} // ignored
			output, stderr, err := runMake(t, folder, environment, "bin/e2e.test: ;\nneeded: ; @echo $@\n", setting, "INNER_LOOP=needed", "e2e")
			if err != nil || strings.Contains(output, "needed") != want {
				t.Errorf("make prints %q and %q, error %v; want it built: %t", output, stderr, err, want)
			}
		})
	}
}

// programs writes the scripts into a new folder. The keys of the map are paths in the folder.
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

// copyProgram copies a script of the repository to the same path in the folder.
func copyProgram(t *testing.T, folder, path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(folder, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), writeProgram(target, string(text))); err != nil {
		t.Fatal(err)
	}
}

// began reports whether a program has run.
func began(folder, path string) bool {
	_, err := os.Stat(filepath.Join(folder, path+".began"))
	return err == nil
}

// writeProgram writes an executable script. The lock keeps a parallel test from starting a process
// that inherits the open file: the kernel does not execute a file that is open for writing
// (go.dev/issue/22315).
func writeProgram(path, script string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(script), 0o755)
}

// settingsSeen returns the settings that a recipe sees, and the standard error of make.
func settingsSeen(t *testing.T, environment []string, arguments ...string) (seen map[string]string, stderr string) {
	t.Helper()
	output, stderr, err := runMake(t, root(t), environment, "show:\n\t$(note-ignored)\n\t@env\n", append(arguments, "show")...)
	if err != nil {
		t.Fatalf("make: %v: %s", err, stderr)
	}
	seen = map[string]string{}
	for line := range strings.Lines(output) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if value != "" && (name == "NODE_IMAGE" || slices.Contains(settings, name)) {
			seen[name] = value
		}
	}
	return seen, stderr
}

// runMake runs make in a folder with the repository's Makefile and more rules. Besides PATH, make
// gets only the variables of environment.
func runMake(t *testing.T, folder string, environment []string, rules string, arguments ...string) (output, stderr string, err error) {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root(t), "Makefile")) // so that Go's test cache depends on the file
	if err != nil {
		t.Fatal(err)
	}
	var stdout, standardError strings.Builder
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--directory", folder, "--file", "-"}, arguments...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(makefile)+rules), &stdout, &standardError
	err = cmd.Run()
	return stdout.String(), standardError.String(), err
}
