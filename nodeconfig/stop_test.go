package nodeconfig_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestScriptEndsAtOnceOnTERM(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_INTERVAL=1000", "PROBE_TIMEOUT=1000")
	asked := make(chan struct{})
	hanging := newCache(t, "alpha.test", func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		hang(w, r)
	})
	refused := nodeconfig.Registry{Upstream: "beta.test", Endpoint: "http://127.0.0.1:1", UpstreamURL: "https://beta.test"}
	p := n.start(t, arguments(hanging.Registry, refused)...)
	<-asked
	p.expect("beta.test: waiting for http://127.0.0.1:1: curl exit status 7")
	temp := filepath.Join(n.certs, ".configure-containerd-registries.abc")
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if log := p.wait(); strings.Contains(log, "Killed") { // wait returns when no child is left, long before PROBE_TIMEOUT
		t.Errorf("bash logs that a job was killed:\n%s", log)
	}
	n.expectEntries(t)
}

// systemd runs the script with --stopped after each stop of the unit. The unit is disabled only
// when gardener-node-agent removes it.
func TestStoppedUnitTakesItsFilesAlongIfItIsDisabled(t *testing.T) {
	const temporary = ".configure-containerd-registries.Ab12"
	managed := nodeconfig.Registry{Upstream: "alpha.test", Endpoint: "http://10.0.0.1:5000", UpstreamURL: "https://alpha.test"}
	for name, test := range map[string]struct {
		systemctl string
		left      []string
	}{
		"disabled":          {"echo disabled; exit 1", []string{"unmanaged.test"}},
		"enabled":           {"echo enabled", []string{temporary, "alpha.test", "unmanaged.test"}},
		"masked":            {"echo masked; exit 1", []string{temporary, "alpha.test", "unmanaged.test"}},
		"not found":         {"echo not-found; exit 4", []string{temporary, "alpha.test", "unmanaged.test"}},
		"systemd is silent": {"echo disabled >&2; exit 1", []string{temporary, "alpha.test", "unmanaged.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.standIn(t, "systemctl", fmt.Sprintf("[[ $* == 'is-enabled %s' ]] || exit 2\n%s", nodeconfig.UnitName, test.systemctl))
			n.write(t, managed.Upstream, nodeconfig.HostsTOML(managed))
			n.write(t, "unmanaged.test", unmanaged)
			if err := os.WriteFile(filepath.Join(n.certs, temporary), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			log := n.start(t, "--stopped").wait()
			n.expectEntries(t, test.left...)
			if strings.Contains(log, "ignoring") {
				t.Errorf("the argument is unknown:\n%s", log)
			}
			if got, _ := os.ReadFile(n.path("unmanaged.test")); string(got) != unmanaged {
				t.Errorf("an unmanaged file is changed to:\n%s", got)
			}
		})
	}
}

// systemd must call the script with --stopped. The cleaner, also that of an older version of the
// extension, must be able to parse the unit.
func TestUnitCallsTheScriptWhenItHasStopped(t *testing.T) {
	unit := nodeconfig.Unit([]nodeconfig.Registry{dockerHub}, 0)
	if want := "\nExecStopPost=-" + nodeconfig.ScriptPath + " --stopped\n"; strings.Count(unit, want) != 1 {
		t.Errorf("the unit does not have %q:\n%s", want, unit)
	}
	if strings.Count(unit, "\nExecStart=") != 1 {
		t.Errorf("the unit does not have one ExecStart line:\n%s", unit)
	}
}
