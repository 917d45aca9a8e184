package nodeconfig_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const byNodeAgent = nodeconfig.NodeAgentMarker + "\nserver = \"https://alpha.test\"\n\n" +
	"[host.\"http://10.0.0.1:5000\"]\n  capabilities = [\"pull\",\"resolve\"]\n\n"

// TestLoopFollowsNodeAgent: gardener-node-agent starts the unit before it removes its files for
// gardener-extension-registry-cache. After that, the files of all upstreams are needed at once,
// even while a cache is silent. The next round would begin much later.
func TestLoopFollowsNodeAgent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers         http.HandlerFunc
		url, kind, says string
	}{
		"the cache answers":     {ready, "https://alpha.test", "mirror", "mirror"},
		"it does not":           {answer(503), "https://alpha.test", "none", "direct"},
		"its URL must be known": {answer(503), "https://alpha.example.com", "direct", "direct"},
		"the URL of the mirror": {ready, "https://alpha.example.com", "mirror", "mirror"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.env = append(n.env, "PROBE_INTERVAL=1000000")
			alpha, beta := newCache(t, "alpha.test", nil, test.answers), newCache(t, "beta.test", nil, ready)
			foreign := newCache(t, "gamma.test", nil, ready)
			alpha.UpstreamURL = test.url
			n.write(t, "alpha.test", byNodeAgent)
			n.write(t, "beta.test", byNodeAgent)
			n.write(t, "gamma.test", unmanaged)
			p := n.startFor(t, alpha.Registry, beta.Registry, foreign.Registry)
			p.state("beta.test", "foreign", "is not ours")
			p.state("alpha.test", "foreign", "is not ours")
			asked := alpha.requests.Load()
			must(t, n.lose(filepath.Dir(n.path("alpha.test"))))
			p.state("alpha.test", test.says, alpha.Endpoint)
			n.expectKind(t, alpha.Registry, test.kind)
			must(t, n.lose(filepath.Dir(n.path("beta.test"))))
			p.state("beta.test", "mirror", beta.Endpoint)
			n.expectKind(t, beta.Registry, "mirror")
			p.state("gamma.test", "foreign", "is not ours")
			if again := alpha.requests.Load() - asked; again > 0 {
				t.Errorf("the cache is asked %d times more", again)
			}
			p.stop()
		})
	}
}

// The script checks these files for a minute. It checks other files once in a round.
func TestLoopFollowsNodeAgentForAWhile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		looks   int
	}{
		"gardener-node-agent's": {byNodeAgent, 200},
		"the owner's":           {unmanaged, 0},
		"none":                  {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.env = append(n.env, "PROBE_INTERVAL=1000000", "PROBE_AGAIN=1")
			n.tool(t, "sleep", `echo "$*" >>"${0%/*}/slept"; exec "$real" "$@"`)
			c := newCache(t, "alpha.test", nil, ready)
			if test.content != "" {
				n.write(t, "alpha.test", test.content)
			}
			p := n.startFor(t, c.Registry)
			var slept string
			p.until("it sleeps for the rest of the round", func() bool {
				content, _ := os.ReadFile(filepath.Join(n.tools, "slept"))
				slept = string(content)
				return strings.Count(slept, "\n") > strings.Count(slept, "1e-3\n")
			})
			if looks := strings.Count(slept, "1e-3\n"); looks != test.looks {
				t.Errorf("it looks %d times more, want %d", looks, test.looks)
			}
			p.stop()
			if c.requests.Load() != 1 {
				t.Errorf("the cache is asked %d times", c.requests.Load())
			}
		})
	}
}

// A file of gardener-node-agent that remains does not delay the next round.
func TestRoundsGoOnBesideNodeAgent(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.env = append(n.env, "PROBE_INTERVAL=30", "PROBE_AGAIN=10")
	n.write(t, "alpha.test", byNodeAgent)
	c := newCache(t, "alpha.test", nil, ready)
	p := n.startFor(t, c.Registry)
	p.until("it asks", func() bool { return c.requests.Load() > 5 })
	p.state("alpha.test", "foreign", "is not ours")
	if content, err := os.ReadFile(n.path("alpha.test")); string(content) != byNodeAgent {
		t.Errorf("the file is changed: %v", err)
	}
}
