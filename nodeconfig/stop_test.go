package nodeconfig_test

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// The cleaner stops the unit before it removes files, and systemd gives the script 10 s to end.
func TestScriptEndsAtOnce(t *testing.T) {
	t.Parallel()
	// A shell or nohup may have made this process ignore these signals. The script would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP)
	for name, ask := range map[string]http.HandlerFunc{"while it sleeps": ready, "while it asks": hang} {
		for _, with := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			t.Run(name+" by "+with.String(), func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				n.env = append(n.env, "PROBE_INTERVAL=1000000", "PROBE_TIMEOUT=1000")
				c := newCache(t, "alpha.test", nil, ask)
				p := n.startFor(t, c.Registry)
				if name == "while it sleeps" {
					p.state("alpha.test", "mirror", "")
				} else {
					p.until("it asks", func() bool { return c.requests.Load() > 0 })
				}
				must(t, os.WriteFile(filepath.Join(n.certs, ".configure-containerd-registries.abc"), nil, 0o600))
				p.signal(with)
				if log := p.wait(); strings.Contains(log, "Terminated") {
					t.Errorf("bash logs that a process was ended:\n%s", log)
				}
				if err := syscall.Kill(-p.cmd.Process.Pid, 0); err == nil {
					t.Error("a child is left")
				}
				if _, err := os.Stat(n.path("alpha.test")); (err == nil) != (name == "while it sleeps") {
					t.Errorf("hosts.toml: %v", err)
				}
				if left, _ := filepath.Glob(n.certs + "/.*"); len(left) > 0 {
					t.Errorf("temporary files are left: %s", left)
				}
			})
		}
	}
}

func TestScriptIgnoresArgumentsThatAreNone(t *testing.T) {
	n, good := newNode(t), newCache(t, "good.test", nil, ready)
	end, tls := ","+good.Endpoint+",https://c", "a.test,https://10.0.0.1:5000,https://a.test,"
	bad := []string{
		"", "a", ",,", "a.test,http://b", "a.test,http://b,https://c,d", "../x" + end, ".." + end, "a/b" + end, "a*" + end, "a b" + end,
		"A.test" + end, "$(touch x)" + end, "a.test" + end + "\"", "a.test" + end + "\nx", "a.test" + end + "\n", "a.test,file:///etc/passwd,https://c",
		"a.test," + good.Endpoint + "/path,https://c", "a.test,-o/x,https://c", "good.test" + end, // an upstream that already has an argument
	}
	for _, certificates := range []string{
		"x", "MI'", "MI\"", "MI$(touch x)", "MI\nMI", "MIIB.", ".MIIB", "MIIB..MIIB", "MI=I", ",x", ",MIIB,", ",MIIB,x", "MIIB,MIIB,MIIB",
	} {
		bad = append(bad, tls+certificates)
	}
	p := n.start(t, append([]string{good.Argument()}, bad...)...)
	p.state("good.test", "mirror", good.Endpoint)
	n.expectKind(t, good.Registry, "mirror")
	if log := p.stop(); strings.Count(log, "ignoring the argument") != len(bad) {
		t.Errorf("not %d arguments are ignored:\n%s", len(bad), log)
	}
	n.expectEntries(t, "good.test")
	p = n.start(t, bad[:3]...) // no upstream is left: the loop only removes files
	p.rounds(1)
	p.stop()
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
			n.tool(t, "systemctl", fmt.Sprintf("[[ $* == 'is-enabled %s' ]] || exit 2\n%s", nodeconfig.UnitName, test.systemctl))
			n.write(t, managed.Upstream, hostsTOML(managed))
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

// systemd must call the script with --stopped. The cleaner, even of an older version of the
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
