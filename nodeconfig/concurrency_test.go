package nodeconfig_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScriptGivesUpWhenItCanNeverWrite(t *testing.T) {
	for name, breakIt := range map[string]func(t *testing.T, n *node){
		"read-only": func(t *testing.T, n *node) {
			n.tool(t, "mktemp", `echo "Read-only file system" >&2; exit 1`)
		},
		"certs.d is no directory": func(t *testing.T, n *node) {
			if err := errors.Join(os.MkdirAll(filepath.Dir(n.certs), 0o755), os.WriteFile(n.certs, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			breakIt(t, n)
			n.env = append(n.env, "GIVE_UP_AFTER=0")
			c := newCache(t, "alpha.test", ready)
			log := n.run(t, c.Registry)
			if want := "alpha.test: giving up on writing " + n.path("alpha.test") + " after 0 s ("; !strings.Contains(log, want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		})
	}
}

func TestScriptMayRunSeveralTimesAtOnce(t *testing.T) {
	n := newNode(t)
	alpha, beta := newCache(t, "alpha.test", ready), newCache(t, "beta.test", ready)
	var processes []*process
	for range 6 {
		processes = append(processes, n.start(t, arguments(alpha.Registry, beta.Registry)...))
	}
	for _, p := range processes {
		p.wait()
	}
	n.expectHosts(t, alpha.Registry)
	n.expectHosts(t, beta.Registry)
	n.expectEntries(t, "alpha.test", "beta.test")
}
