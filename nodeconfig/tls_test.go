package nodeconfig_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestScriptWritesCertificates(t *testing.T) {
	ca, other := newTestCA(t, "cache"), newTestCA(t, "other")
	for name, change := range map[string]func(r *nodeconfig.Registry){
		"of the cache":            func(*nodeconfig.Registry) {},
		"of an old and a new one": func(r *nodeconfig.Registry) { r.EndpointCA = slices.Concat(other.PEM, ca.PEM) },
		"of the upstream too":     func(r *nodeconfig.Registry) { r.UpstreamCA = slices.Concat(other.PEM, other.PEM) },
		"of an upstream by HTTP":  func(r *nodeconfig.Registry) { r.UpstreamURL, r.UpstreamCA = "http://alpha.test", other.PEM },
		"of 60 CAs":               func(r *nodeconfig.Registry) { r.UpstreamCA = bytes.Repeat(other.PEM, 60) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			c := newTLSCache(t, "alpha.test", ca, ca.PEM, ready)
			change(&c.Registry)
			n.run(t, c.Registry)
			n.expectHosts(t, c.Registry)
			n.expectEntries(t, "alpha.test")
			requests := c.requests.Load()
			n.run(t, c.Registry)
			if c.requests.Load() != requests {
				t.Error("the cache is asked again for an unchanged file")
			}
		})
	}
}

func TestScriptLeavesOutCertificatesWithoutHTTPS(t *testing.T) {
	n := newNode(t)
	c := newCache(t, "alpha.test", ready)
	c.EndpointCA = newTestCA(t, "cache").PEM
	n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
}

func TestScriptTrustsOnlyTheCertificatesGiven(t *testing.T) {
	ca, other := newTestCA(t, "cache"), newTestCA(t, "other")
	for name, given := range map[string][]byte{"another CA": other.PEM, "none": nil} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.env = append(n.env, "GIVE_UP_AFTER=0")
			c := newTLSCache(t, "alpha.test", ca, given, ready)
			log := n.run(t, c.Registry)
			n.expectEntries(t)
			if want := "giving up on " + c.Endpoint + " after 0 s (curl exit status 60)"; !strings.Contains(log, want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		})
	}
}

// While CAs are rotated, a cache may get its new certificate after the nodes get the new CA.
func TestScriptKeepsAFileThatStillWorksWhileCAsAreRotated(t *testing.T) {
	ca, next := newTestCA(t, "old"), newTestCA(t, "new")
	n := newNode(t)
	asked := make(chan struct{}, 1000)
	c := newTLSCache(t, "alpha.test", ca, ca.PEM, func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })
	n.write(t, "alpha.test", nodeconfig.HostsTOML(c.Registry))
	before := c.Registry
	c.EndpointCA = next.PEM
	p := n.start(t, c.Argument())
	p.expect("waiting for " + c.Endpoint + ": curl exit status 60")
	for range 3 { // each time the old file still works
		select {
		case <-asked:
		case <-time.After(patience):
			t.Fatalf("the script does not check the cache with the old certificates within %s", patience)
		}
	}
	n.expectHosts(t, before)

	c.EndpointCA = slices.Concat(ca.PEM, next.PEM)
	n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
}

// A file with the right CA for the cache is still useless if containerd cannot read the upstream's
// CA bundle from it.
func TestScriptTakesADamagedFileAwayWhileCAsAreRotated(t *testing.T) {
	n := newNode(t)
	ca := newTestCA(t, "old")
	c := newTLSCache(t, "alpha.test", ca, ca.PEM, ready)
	c.UpstreamCA = newTestCA(t, "upstream").PEM
	n.write(t, "alpha.test", strings.Replace(nodeconfig.HostsTOML(c.Registry), "\nca = \"hosts", "\nca = \"horst", 1))
	c.EndpointCA = newTestCA(t, "new").PEM
	p := n.start(t, c.Argument())
	p.expect("waiting for")
	direct := c.Registry
	direct.Endpoint = ""
	n.expectHosts(t, direct)
}

// A damaged file may make every pull fail. It must not stay until the cache answers.
func TestScriptTakesADamagedFileAwayWhileTheCacheIsDown(t *testing.T) {
	ca := newTestCA(t, "cache")
	for name, damage := range map[string]func(content string) string{
		"the certificate":      func(content string) string { return strings.Replace(content, "\nMI", "\nXX", 1) },
		"the name of the file": func(content string) string { return strings.Replace(content, "  ca = \"hosts", "  ca = \"horst", 1) },
		"no certificate":       func(content string) string { return strings.ReplaceAll(content, "-----BEGIN", "-----BEGUN") },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			c := newTLSCache(t, "alpha.test", ca, ca.PEM, answer(http.StatusServiceUnavailable))
			damaged := damage(nodeconfig.HostsTOML(c.Registry))
			if _, err := hostsOf(t, "alpha.test", damaged); err == nil {
				t.Fatal("containerd accepts the damaged file")
			}
			n.write(t, "alpha.test", damaged)
			p := n.start(t, c.Argument())
			p.expect("waiting for")
			n.expectEntries(t)
		})
	}
}

func TestScriptKeepsTheCAOfTheUpstreamWhilePullsAreDirect(t *testing.T) {
	ca, upstreamCA := newTestCA(t, "cache"), newTestCA(t, "upstream")
	for name, before := range map[string]func(r nodeconfig.Registry) string{
		"nothing":          func(nodeconfig.Registry) string { return "" },
		"another endpoint": func(r nodeconfig.Registry) string { r.Endpoint = "https://127.0.0.1:1"; return nodeconfig.HostsTOML(r) },
		"another CA":       func(r nodeconfig.Registry) string { r.EndpointCA = upstreamCA.PEM; return nodeconfig.HostsTOML(r) },
		"a file without any CA": func(r nodeconfig.Registry) string {
			r.EndpointCA, r.UpstreamCA = nil, nil
			return nodeconfig.HostsTOML(r)
		},
		"direct pulls already": func(r nodeconfig.Registry) string { r.Endpoint = ""; return nodeconfig.HostsTOML(r) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			up := make(chan struct{})
			c := newTLSCache(t, "alpha.test", ca, ca.PEM, func(w http.ResponseWriter, _ *http.Request) {
				select {
				case <-up:
				default:
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			})
			c.UpstreamCA = upstreamCA.PEM
			if content := before(c.Registry); content != "" {
				n.write(t, "alpha.test", content)
			}
			p := n.start(t, c.Argument())
			p.expect("waiting for")
			direct := c.Registry
			direct.Endpoint = ""
			n.expectHosts(t, direct)
			close(up)
			p.wait()
			n.expectHosts(t, c.Registry)
			n.expectEntries(t, "alpha.test")
		})
	}
}

// TLS is switched on, off and on again. After each switch, pulls are direct until the endpoint with
// the new scheme answers.
func TestScriptFollowsTheSchemeOfTheEndpoint(t *testing.T) {
	n := newNode(t)
	ca := newTestCA(t, "cache")
	plain, secure := newCache(t, "alpha.test", ready), newTLSCache(t, "alpha.test", ca, ca.PEM, ready)
	for _, registry := range []nodeconfig.Registry{plain.Registry, secure.Registry, plain.Registry, secure.Registry} {
		log := n.run(t, registry)
		n.expectHosts(t, registry)
		if content, _ := os.ReadFile(n.path("alpha.test")); strings.Count(string(content), "[host.") != 1 {
			t.Errorf("hosts.toml:\n%s", content)
		}
		if !strings.Contains(log, "pulls go through "+registry.Endpoint) {
			t.Errorf("the log does not say so:\n%s", log)
		}
	}
}

func TestScriptIgnoresArgumentsWithOtherCertificates(t *testing.T) {
	n := newNode(t)
	const argument = "a.test,https://10.0.0.1:5000,https://a.test,"
	bad := []string{"x", "MI'", "MI\"", "MI$(touch x)", "MI\nMI", "MIIB.", ".MIIB", "MIIB..MIIB", "MI=I", ",x", ",MIIB,", ",MIIB,x", "MIIB,MIIB,MIIB"}
	var all []string
	for _, certificates := range bad {
		all = append(all, argument+certificates)
	}
	log := n.start(t, all...).wait()
	n.expectEntries(t)
	if got := strings.Count(log, "ignoring the argument"); got != len(bad) {
		t.Errorf("%d arguments are ignored, want %d:\n%s", got, len(bad), log)
	}
}
