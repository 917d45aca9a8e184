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

func TestScriptWritesHostsOnceTheCacheAnswers(t *testing.T) {
	n := newNode(t)
	alpha, v6 := newCache(t, "alpha.test", ready), newCache(t, "[2001:db8::1]:5000", ready)
	n.run(t, alpha.Registry, v6.Registry)
	n.expectHosts(t, alpha.Registry)
	n.expectHosts(t, v6.Registry)
	n.expectEntries(t, "[2001:db8::1]:5000", "alpha.test")
	info, err := os.Stat(n.path("alpha.test"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v, want 0644", info.Mode(), err)
	}
}

func TestScriptTakesOnly200AsReady(t *testing.T) {
	for _, status := range []int{204, 301, 401, 404, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			n := newNode(t)
			n.env = append(n.env, "GIVE_UP_AFTER=0")
			elsewhere := newCache(t, "elsewhere.test", ready)
			c := newCache(t, "alpha.test", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", elsewhere.Endpoint+"/v2/")
				w.WriteHeader(status)
			})
			log := n.run(t, c.Registry)
			n.expectEntries(t)
			if want := fmt.Sprintf("giving up on %s after 0 s (HTTP status %d)", c.Endpoint, status); !strings.Contains(log, want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		})
	}
}

func TestScriptRetriesUntilReady(t *testing.T) {
	n := newNode(t)
	var c *cache
	c = newCache(t, "alpha.test", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(n.path("alpha.test")); err == nil {
			t.Error("hosts.toml is there before the cache is ready")
		}
		if c.requests.Load() <= 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	log := n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
	if got := strings.Count(log, "HTTP status 503"); got != 1 {
		t.Errorf("the same answer is logged %d times, want once:\n%s", got, log)
	}
}

func TestScriptSlowsDownWhileNothingAnswers(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_INTERVAL=3", "PROBE_STEADY_FOR=0")
	n.tool(t, "sleep", `echo "slept $1" >&2`)
	var c *cache
	c = newCache(t, "alpha.test", func(w http.ResponseWriter, _ *http.Request) {
		if c.requests.Load() <= 7 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	log := n.run(t, c.Registry)
	for _, seconds := range []int{3, 6, 12, 24, 48, 60, 60} {
		line := fmt.Sprintf("slept %d\n", seconds)
		if !strings.Contains(log+"\n", line) {
			t.Fatalf("it does not sleep %d s next:\n%s", seconds, log)
		}
		log = strings.Replace(log+"\n", line, "", 1)
	}
}

func TestScriptDoesNotLetOneCacheHoldBackAnother(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{"hangs": hang, "fails": answer(500)} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			bad, good := newCache(t, "alpha.test", handler), newCache(t, "beta.test", ready)
			p := n.start(t, arguments(bad.Registry, good.Registry)...)
			p.expect("beta.test: pulls go through")
			n.expectHosts(t, good.Registry)
			n.expectEntries(t, "beta.test")
		})
	}
}

func TestScriptAsksAgainWhenTheCacheHangs(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_TIMEOUT=0.2")
	var c *cache
	c = newCache(t, "alpha.test", func(w http.ResponseWriter, r *http.Request) {
		if c.requests.Load() == 1 {
			hang(w, r)
		}
	})
	n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
}

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
	if log := p.wait(); strings.Contains(log, "Killed") { // returns only when no child is left, long before 1000 s
		t.Errorf("bash talks about its jobs:\n%s", log)
	}
	n.expectEntries(t)
}

func TestScriptIgnoresTheProxyOfTheNode(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "http_proxy=http://127.0.0.1:1", "GIVE_UP_AFTER=0")
	c := newCache(t, "alpha.test", ready)
	n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
}

// systemd runs this after each stop of the unit. The unit is disabled only when gardener-node-agent
// removes it.
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

// systemd must call the script that way, and the cleaner and older versions must still parse the
// unit.
func TestUnitCallsTheScriptWhenItHasStopped(t *testing.T) {
	unit := nodeconfig.Unit([]nodeconfig.Registry{dockerHub}, 0)
	if want := "\nExecStopPost=-" + nodeconfig.ScriptPath + " --stopped\n"; strings.Count(unit, want) != 1 {
		t.Errorf("the unit does not have %q:\n%s", want, unit)
	}
	if strings.Count(unit, "\nExecStart=") != 1 {
		t.Errorf("the unit does not have one ExecStart line:\n%s", unit)
	}
}
