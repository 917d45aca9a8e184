package nodeconfig_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// killJob kills the process group of a job of the script, but never the process group of the tests.
const killJob = `[[ $(ps -o pgid= -p $$) -ne $TEST_GROUP ]] && kill -KILL 0`

// TestScriptKilledAtAnyPointLeavesNoHalfFile kills a job of the script at each command that writes
// the file. The file must be complete or absent. The next run completes it and removes leftovers.
func TestScriptKilledAtAnyPointLeavesNoHalfFile(t *testing.T) {
	for _, tool := range []string{"mktemp", "chmod", "sync", "mkdir", "mv"} {
		for when, body := range map[string]string{"before": killJob, "after": `"$real" "$@"; ` + killJob} {
			t.Run(when+" "+tool, func(t *testing.T) {
				n := newNode(t)
				n.env = append(n.env, fmt.Sprintf("TEST_GROUP=%d", syscall.Getpgrp()))
				if err := os.MkdirAll(n.certs, 0o755); err != nil {
					t.Fatal(err)
				}
				if tool == "mkdir" { // the script's own call, before its first job, must not fail
					body = `[[ $* == *certs.d ]] && exec "$real" "$@"` + "\n" + body
				}
				c := newCache(t, "alpha.test", ready)
				n.tool(t, tool, body)
				n.run(t, c.Registry)
				if _, err := os.Stat(n.path("alpha.test")); err == nil {
					n.expectHosts(t, c.Registry)
				} else if tool == "mv" && when == "after" {
					t.Error("the fake command does not act as intended")
				}
				if err := os.Remove(filepath.Join(n.tools, tool)); err != nil {
					t.Fatal(err)
				}
				n.run(t, c.Registry)
				n.expectHosts(t, c.Registry)
				n.expectEntries(t, "alpha.test")
			})
		}
	}
}

func TestScriptTriesAgainWhenItCannotWrite(t *testing.T) {
	for _, tool := range []string{"mktemp", "chmod", "sync", "mv"} {
		t.Run(tool, func(t *testing.T) {
			n := newNode(t)
			// Simulate a full disk: the first call fails.
			n.tool(t, tool, `mkdir "$0.called" 2>/dev/null && { echo "No space left on device" >&2; exit 1; }; exec "$real" "$@"`)
			c := newCache(t, "alpha.test", ready)
			log := n.run(t, c.Registry)
			n.expectHosts(t, c.Registry)
			n.expectEntries(t, "alpha.test")
			if want := "alpha.test: cannot write " + n.path("alpha.test"); strings.Count(log, want) != 1 {
				t.Errorf("the log does not say %q once:\n%s", want, log)
			}
		})
	}
}

// On a full or read-only disk, the script retries at growing intervals and does not flood the
// journal.
func TestScriptSlowsDownWhileItCannotWrite(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_INTERVAL=3", "PROBE_STEADY_FOR=0")
	n.tool(t, "sleep", `echo "slept $1" >&2; [[ $1 == 60 ]] && rm -f "${0%/*}/mktemp"; :`)
	n.tool(t, "mktemp", `echo "Read-only file system" >&2; exit 1`)
	c := newCache(t, "alpha.test", ready)
	log := n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
	var slept []string
	for line := range strings.Lines(log) {
		if seconds, ok := strings.CutPrefix(line, "slept "); ok {
			slept = append(slept, strings.TrimSpace(seconds))
		}
	}
	if want := []string{"3", "6", "12", "24", "48", "60"}; !slices.Equal(slept, want) {
		t.Errorf("between the tries it sleeps %s, want %s", slept, want)
	}
	want := "alpha.test: cannot write " + n.path("alpha.test") + ", trying again: Read-only file system"
	if strings.Count(log, want) != 1 || strings.Count(log, "Read-only") != 1 {
		t.Errorf("the log does not say %q once:\n%s", want, log)
	}
}

func TestScriptPassesShellcheck(t *testing.T) {
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed (make tools installs it)")
	}
	script := filepath.Join(t.TempDir(), "script.sh")
	if err := os.WriteFile(script, []byte(nodeconfig.Script()), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), shellcheck, script).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
