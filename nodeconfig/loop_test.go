package nodeconfig_test

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// TestLoopChoosesBetweenMirrorAndDirect lets a cache answer each probe with 200 (+), with 503 (-),
// or with 503 after the loss of hosts.toml (!). With each request it checks the file after the
// previous probes: mirror (M), direct (D), none (.) or another (x).
func TestLoopChoosesBetweenMirrorAndDirect(t *testing.T) {
	t.Parallel()
	upstreamCA := newTestCA(t, "upstream").PEM
	same := func(r nodeconfig.Registry) string { return hostsTOML(r) }
	elsewhere := func(r nodeconfig.Registry) string {
		r.Endpoint = "http://10.0.0.1:5000"
		return hostsTOML(r)
	}
	direct := func(r nodeconfig.Registry) string { r.Endpoint = ""; return hostsTOML(r) }
	for name, test := range map[string]struct {
		before         func(r nodeconfig.Registry) string // hosts.toml at the start
		ca             []byte
		url            string
		answers, files string
	}{
		"new, the first answer suffices":         {nil, nil, "", "+", ".M"},
		"new, three answers after a failure":     {nil, nil, "", "-+++", "....M"},
		"not after two":                          {nil, nil, "", "-++-++-+++", "..........M"},
		"one failure":                            {nil, nil, "", "+-+-+", ".MMMMM"},
		"two failures":                           {nil, nil, "", "+--", ".MM."},
		"back":                                   {nil, nil, "", "+--+++--", ".MM...MM."},
		"a right file, the cache answers":        {same, nil, "", "++", "MMM"},
		"a right file, the cache is away":        {same, nil, "", "-+-+", "MMMMM"},
		"a right file, the cache stays away":     {same, nil, "", "--+++", "MM...M"},
		"another endpoint, the cache answers":    {elsewhere, nil, "", "+", "xM"},
		"another endpoint, the cache is away":    {elsewhere, nil, "", "-", "x."},
		"lost, the cache answers again":          {nil, nil, "", "+!+", ".M.M"},
		"lost, the cache stays away":             {nil, nil, "", "+!-+", ".M..."},
		"upstream with a CA":                     {nil, upstreamCA, "", "-+++--", ".DDDMMD"},
		"upstream with a CA, direct already":     {direct, upstreamCA, "", "-+++", "DDDDM"},
		"upstream with a CA, other endpoint":     {elsewhere, upstreamCA, "", "-+++", "xDDDM"},
		"upstream without HTTPS":                 {nil, nil, "http://alpha.test", "-+++--", ".DDDMMD"},
		"upstream elsewhere":                     {direct, nil, "https://alpha.example.com", "-", "DD"},
		"upstream with a CA, the file gets lost": {nil, upstreamCA, "", "-!-", ".DDD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, done, files := newNode(t), make(chan struct{}), ""
			var c *cache
			c = newCache(t, "alpha.test", nil, func(w http.ResponseWriter, _ *http.Request) {
				if len(files) > len(test.answers) {
					return
				}
				files += map[string]string{"mirror": "M", "direct": "D", "none": ".", "other": "x"}[n.kind(c.Registry)]
				if len(files) > len(test.answers) {
					close(done)
					return
				}
				if now := test.answers[len(files)-1]; now != '+' {
					w.WriteHeader(http.StatusServiceUnavailable)
					if now == '!' {
						_ = os.Remove(n.path("alpha.test"))
					}
				}
			})
			c.UpstreamCA, c.UpstreamURL = test.ca, cmp.Or(test.url, c.UpstreamURL)
			if test.before != nil {
				n.write(t, "alpha.test", test.before(c.Registry))
			}
			p := n.startFor(t, c.Registry)
			p.until("as many probes", func() bool {
				select {
				case <-done:
					return true
				default:
					return false
				}
			})
			if log := p.stop(); files != test.files {
				t.Errorf("answers %s lead to %s, want %s; it logged:\n%s", test.answers, files, test.files, log)
			}
		})
	}
}

// TestLoopSuspendsACacheThatFails: whatever the failure, pulls go directly to the upstream until it
// ends.
func TestLoopSuspendsACacheThatFails(t *testing.T) {
	t.Parallel()
	ca, other := newTestCA(t, "cache"), newTestCA(t, "other")
	handler := func(handler http.HandlerFunc) func(*cache) { return func(c *cache) { c.become(handler) } }
	for name, test := range map[string]struct {
		fail   func(c *cache)
		reason string
	}{
		"503":        {handler(answer(503)), "answers 503"},
		"500":        {handler(answer(500)), "answers 500"},
		"429":        {handler(answer(429)), "answers 429"},
		"401":        {handler(answer(401)), "answers 401"},
		"204":        {handler(answer(204)), "answers 204"},
		"redirected": {handler(http.RedirectHandler("/v2/", http.StatusFound).ServeHTTP), "answers 302"},
		"hangs":      {handler(hang), "does not answer (000 "},
		"hangs later": {handler(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}), "answers 200 "},
		"refused": {func(c *cache) { c.server.Close() }, "does not answer (000 "},
		"wrong certificate": {func(c *cache) { c.certificate.Store(other.certificateFor(t, valid)) },
			"does not answer (000 SSL certificate problem"},
		"expired certificate": {func(c *cache) { c.certificate.Store(ca.certificateFor(t, expired)) },
			"does not answer (000 SSL certificate problem: certificate has expired)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.env = append(n.env, "PROBE_TIMEOUT=1")
			c, beside := newCache(t, "alpha.test", ca, ready), newCache(t, "beta.test", nil, ready)
			right := c.certificate.Load()
			p := n.startFor(t, c.Registry, beside.Registry)
			p.state("alpha.test", "mirror", c.Endpoint+" answers")
			n.expectKind(t, c.Registry, "mirror")
			test.fail(c)
			p.state("alpha.test", "direct", c.Endpoint+" "+test.reason)
			n.expectKind(t, c.Registry, "none")
			p.state("beta.test", "mirror", "")
			if name == "refused" {
				return
			}
			c.become(ready)
			c.certificate.Store(right)
			p.state("alpha.test", "mirror", c.Endpoint+" answers")
			n.expectKind(t, c.Registry, "mirror")
			log := p.stop()
			for _, line := range []string{": mirror: ", ": direct: "} {
				if !strings.Contains(log, "alpha.test"+line+c.Endpoint) {
					t.Errorf("the log does not say %q:\n%s", line, log)
				}
			}
		})
	}
}

// All caches are probed at the same time: each answers only when all have been asked.
func TestLoopAsksAllCachesWithOneProcess(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_INTERVAL=1000000")
	n.tool(t, "curl", `echo "$*" >>"${0%/*}/asked"; exec "$real" "$@"`)
	var asked atomic.Int32
	all := make(chan struct{})
	var registries []nodeconfig.Registry
	for i := range 20 {
		registries = append(registries, newCache(t, fmt.Sprintf("%d.test", i), nil, func(_ http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 20 {
				close(all)
			}
			select {
			case <-all:
			case <-r.Context().Done():
			}
		}).Registry)
	}
	p := n.startFor(t, registries...)
	for _, r := range registries {
		p.state(r.Upstream, "mirror", "")
		n.expectKind(t, r, "mirror")
	}
	calls, err := os.ReadFile(filepath.Join(n.tools, "asked"))
	if got := strings.Count(string(calls), "--config"); got != 1 {
		t.Errorf("20 caches are asked by %d processes: %s, %v", got, calls, err)
	}
}

func TestStateFile(t *testing.T) {
	n := newNode(t)
	alpha, v6 := newCache(t, "alpha.test", nil, ready), newCache(t, "[2001:db8::1]:5000", nil, answer(503))
	n.write(t, "beta.test", unmanaged)
	p := n.startFor(t, v6.Registry, alpha.Registry,
		nodeconfig.Registry{Upstream: "beta.test", Endpoint: "http://[::1]:1", UpstreamURL: "https://[::1]:5000"})
	p.rounds(3)
	content, err := os.ReadFile(filepath.Join(n.run, "state"))
	want := "[2001:db8::1]:5000 direct " + v6.Endpoint + " answers 503\n" + "alpha.test mirror " + alpha.Endpoint + " answers\n" +
		"beta.test foreign " + n.path("beta.test") + " is not ours, leaving it alone\n"
	if string(content) != want {
		t.Errorf("got %v\n%swant\n%s", err, content, want)
	}
	p.until("a file replaces the folder, in which the script writes", func() bool {
		return os.RemoveAll(n.run) == nil && os.WriteFile(n.run, nil, 0o600) == nil
	})
	p.expect("alpha.test: direct: ") // in doubt
	must(t, os.Remove(n.run))
	p.rounds(3)
	p.state("alpha.test", "mirror", "")
}

// TestLoopAsksAgainSoonAfterAFailure checks that the probes that confirm a failure ask only the
// cache that fails.
func TestLoopAsksAgainSoonAfterAFailure(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_INTERVAL=1000000")
	c, beside := newCache(t, "alpha.test", nil, answer(503)), newCache(t, "beta.test", nil, ready)
	n.write(t, "alpha.test", hostsTOML(c.Registry))
	p := n.startFor(t, beside.Registry, c.Registry)
	p.state("alpha.test", "direct", "answers 503")
	p.state("beta.test", "mirror", "")
	if asked := beside.requests.Load(); asked != 1 {
		t.Errorf("the cache that answers is asked %d times", asked)
	}
}

// TestLoopHurriesAfterAFailure reads the pauses between probes, in fifths of the interval. After a
// failure (-), at the start or later, a cache that does not answer is soon asked nine more times,
// but not after silence (~). Other caches are not asked more often.
func TestLoopHurriesAfterAFailure(t *testing.T) {
	t.Parallel()
	for answers, test := range map[string]struct{ want, timeout, silence string }{
		"----------" + "-" + "+++++" + "--" + "+++" + "++": {"1111111115" + "5" + "555" + "15" + "55", "60", "3000"},
		"-~--": {"15" + "55", "5", "3000"},
		"~~~":  {"555", "1", "3000"},
		"---":  {"555", "60", "3000000"}, // a probe could delay the next round
	} {
		t.Run(answers, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.env = append(n.env, "PROBE_INTERVAL=1000000", "PROBE_AGAIN=1", "PROBE_TIMEOUT="+test.timeout, "SILENCE="+test.silence)
			n.tool(t, "sleep", `echo "$1" >>"${0%/*}/pauses"; exec "$real" 0.01`)
			var asked atomic.Int32
			done := make(chan struct{})
			c := newCache(t, "alpha.test", nil, func(w http.ResponseWriter, r *http.Request) {
				switch probe := int(asked.Add(1)); {
				case probe > len(answers):
					if probe == len(answers)+1 {
						close(done)
					}
					hang(w, r) // so that no later pause is recorded
				case answers[probe-1] == '~':
					hang(w, r)
				case answers[probe-1] == '-':
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			})
			beside := newCache(t, "beta.test", nil, ready)
			p := n.startFor(t, c.Registry, beside.Registry)
			p.until("as many probes", func() bool {
				select {
				case <-done:
					return true
				default:
					return false
				}
			})
			p.stop()
			pauses, err := os.ReadFile(filepath.Join(n.tools, "pauses"))
			must(t, err)
			got := ""
			for _, pause := range strings.Fields(string(pauses)) {
				ms, err := strconv.Atoi(strings.TrimSuffix(pause, "e-3"))
				must(t, err)
				if ms > 1 {
					got += strconv.Itoa(int(math.Ceil(float64(ms) / 200_000)))
				}
			}
			if got != test.want {
				t.Errorf("the pauses were %s fifths of the interval, want %s", got, test.want)
			}
			if rounds := strings.Count(test.want, "5") + 1; int(beside.requests.Load()) > rounds {
				t.Errorf("another cache was asked %d times in %d rounds", beside.requests.Load(), rounds)
			}
		})
	}
}

// A round does not take longer with a cache that hangs. Other load can only lengthen the time
// between two rounds, so the shortest time counts.
func TestLoopIsNotDelayedByACacheThatHangs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.env = append(n.env, "PROBE_INTERVAL=1500", "PROBE_TIMEOUT=1")
	last, shortest, asked := time.Time{}, time.Hour, atomic.Int32{}
	c := newCache(t, "alpha.test", nil, func(http.ResponseWriter, *http.Request) {
		if now := time.Now(); asked.Add(1) > 1 { // one at a time
			last, shortest = now, min(shortest, now.Sub(last))
		} else {
			last = now
		}
	})
	p := n.startFor(t, c.Registry, newCache(t, "beta.test", nil, hang).Registry)
	p.until("five rounds", func() bool { return asked.Load() >= 5 })
	p.stop()
	if shortest > 2*time.Second {
		t.Errorf("the loop asks every %s, want 1.5 s", shortest)
	}
}

// TestBounds checks the times in docs/node.md. The next two probes detect a failure that begins
// after an answer, and the next three a recovery. Rounds begin at fixed times, so caches that hang
// change nothing as long as all probes fit in between.
func TestBounds(t *testing.T) {
	value := func(name string, unit time.Duration) time.Duration {
		found := regexp.MustCompile(`(?m)^` + name + `=\$\{[A-Z_]+:-([0-9.]+)\}`).FindStringSubmatch(nodeconfig.Script())
		if found == nil {
			t.Fatalf("the script has no %s", name)
		}
		number, err := strconv.ParseFloat(found[1], 64)
		must(t, err)
		return time.Duration(number * float64(unit))
	}
	interval, again := value("probe_interval", time.Millisecond), value("probe_again", time.Millisecond)
	probe := value("probe_timeout", time.Second)
	if failure := interval + probe + again + probe; failure >= 10*time.Second {
		t.Errorf("pulls are direct %s after a failure", failure)
	}
	if value("silence", time.Millisecond)/2 < probe {
		t.Error("a probe between two rounds can delay the next one")
	}
	recovery := interval + probe + 2*(again+probe)
	if recovery >= 12*time.Second {
		t.Errorf("pulls go through the cache %s after its recovery", recovery)
	}
	if probes := recovery - interval; probes >= interval*92/100 {
		t.Errorf("the probes of a round take %s and delay the next one", probes)
	}
}

// TestLoopWritesCertificates checks the certificates in hosts.toml, and that curl uses them.
func TestLoopWritesCertificates(t *testing.T) {
	t.Parallel()
	ca, other := newTestCA(t, "cache"), newTestCA(t, "other")
	for name, test := range map[string]struct {
		ca     *testCA
		change func(r *nodeconfig.Registry)
		want   string
	}{
		"of the cache":               {ca, func(*nodeconfig.Registry) {}, "mirror"},
		"of an old and a new one":    {ca, func(r *nodeconfig.Registry) { r.EndpointCA = slices.Concat(other.PEM, ca.PEM) }, "mirror"},
		"of the upstream too":        {ca, func(r *nodeconfig.Registry) { r.UpstreamCA = slices.Concat(other.PEM, other.PEM) }, "mirror"},
		"of an upstream by HTTP":     {ca, func(r *nodeconfig.Registry) { r.UpstreamURL, r.UpstreamCA = "http://alpha.test", other.PEM }, "mirror"},
		"of 60 CAs":                  {ca, func(r *nodeconfig.Registry) { r.UpstreamCA = []byte(strings.Repeat(string(other.PEM), 60)) }, "mirror"},
		"ignored of a cache by HTTP": {nil, func(r *nodeconfig.Registry) { r.EndpointCA = ca.PEM }, "mirror"},
		"of another CA":              {ca, func(r *nodeconfig.Registry) { r.EndpointCA = other.PEM }, "none"},
		"none":                       {ca, func(r *nodeconfig.Registry) { r.EndpointCA = nil }, "none"},
		"HTTPS expected": {nil, func(r *nodeconfig.Registry) {
			r.Endpoint, r.EndpointCA = strings.Replace(r.Endpoint, "http", "https", 1), ca.PEM
		}, "none"},
		"HTTP expected": {ca, func(r *nodeconfig.Registry) { r.Endpoint = strings.Replace(r.Endpoint, "https", "http", 1) }, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			c := newCache(t, "alpha.test", test.ca, ready)
			test.change(&c.Registry)
			p := n.startFor(t, c.Registry)
			p.rounds(1)
			n.expectKind(t, c.Registry, test.want)
		})
	}
}
