package main

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestCompletion: each shell has a script, and commands and fixed arguments are completed.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, out, _ := run(t, "", "completion", shell); code != program.ExitFine || !strings.Contains(out, "testbed") {
			t.Errorf("%s: exit code %d, %d bytes", shell, code, len(out))
		}
	}
	for line, want := range map[string]string{
		"kubectl ":          "shoot",
		"shoot rotate-ca-s": "rotate-ca-start",
		"completion f":      "fish",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if _, out, _ := run(t, "", args...); !strings.Contains(out, want) {
			t.Errorf("%q is completed with %q, want %q in it", line, out, want)
		}
	}
}
