package main

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestCompletedNames: names are completed in this order, even if the testbed does not exist.
func TestCompletedNames(t *testing.T) {
	for line, want := range map[string]string{
		"fault add up":                      "upstream/alpha upstream/beta upstream/gamma",
		"fault add node/w":                  "node/worker node/worker2",
		"fault add cache/alpha r":           "refuse recreate-service",
		"fault add rust ":                   "",
		"fault add cache/alpha stop ":       "",
		"reproduce s1":                      "s1 s10 s11 s12 s13 s14 s15 s16 s17 s18 s19",
		"reproduce service-rec":             "service-recreated",
		"reproduce s22 s2":                  "s2 s20 s21 s23 s24 s25 s26 s27 s28 s29",
		"exec se":                           "seed-control-plane",
		"exec worker w":                     "",
		"exec ":                             "worker worker2 control-plane seed-control-plane",
		"pull --node ":                      "worker worker2",
		"push --upstream g":                 "gamma",
		"--prefix no_testbed fault add ups": "", // an invalid prefix
	} {
		t.Run(line, func(t *testing.T) {
			args := strings.Split("--prefix "+absent+" __complete "+line, " ")
			if _, out, stderr := run(t, "", args...); suggested(out) != want {
				t.Errorf("completed with %q, want %q; standard error %q", suggested(out), want, stderr)
			}
		})
	}
}

// suggested returns the names in the answer of __complete, without the directive at its end.
func suggested(answer string) string {
	answer, _, _ = strings.Cut(answer, ":")
	return strings.Join(strings.Fields(answer), " ")
}

// TestCompletion: each shell has a script, and commands and their arguments are completed.
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
