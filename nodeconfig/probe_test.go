package nodeconfig_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// TestLoopAsksTheHealthPort: a handshake costs a cache much more than an answer, so a healthy cache
// gets one handshake in 40 rounds. Only an answer of the endpoint changes the state, and a health
// port that contradicts it is probed once in 40 rounds. The pattern lists the probes: of the health
// port (h), or of the endpoint by HTTP (p) or HTTPS (S).
func TestLoopAsksTheHealthPort(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		endpoint    string
		first, then [2]string // the answers of health port and endpoint, then those after 20 probes
		state, asks string
	}{
		"healthy":              {v4, [2]string{"200", "200"}, [2]string{"200", "200"}, "mirror", `^Sh{0,39}(Sh{39})+Sh*$`},
		"by IPv6":              {v6, [2]string{"200", "200"}, [2]string{"200", "200"}, "mirror", `^Sh{0,39}(Sh{39})+Sh*$`},
		"on the port of HTTPS": {named, [2]string{"200", "200"}, [2]string{"200", "200"}, "mirror", `^Sh{0,39}(Sh{39})+Sh*$`},
		"by HTTP":              {plain, [2]string{"000", "200"}, [2]string{"000", "200"}, "mirror", `^p+$`},
		"TLS begins to fail":   {v4, [2]string{"200", "200"}, [2]string{"200", "000"}, "direct", `^S[Sh]{0,60}SS{20}`},
		"cannot serve":         {v4, [2]string{"200", "200"}, [2]string{"503", "503"}, "direct", `^Sh*S?h*hSS{20}`},
		"health port is lost":  {v4, [2]string{"200", "200"}, [2]string{"000", "200"}, "mirror", `^S[Sh]*?hS{1,40}(hS{40})+(hS*)?$`},
		"no such page":         {v4, [2]string{"404", "200"}, [2]string{"404", "200"}, "mirror", `^SS?(hS{1,41})(hS{40})+(hS*)?$`},
		"upgraded":             {v4, [2]string{"404", "200"}, [2]string{"200", "200"}, "mirror", `^SS?(hS{1,41})+h{30}`},
		"an old certificate":   {v4, [2]string{"200", "000"}, [2]string{"200", "000"}, "direct", `^S+$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.env = append(n.env, "PROBE_INTERVAL=1", "PROBE_AGAIN=1", "HEALTH_PORT=") // the default
			n.tool(t, "curl", `[[ $* != *--version* ]] || exit 0
read -r health endpoint <"${0%/*}/answers"
case $(grep '^url = ' "$RUN_DIR/requests") in
  "url = \"http://${ENDPOINT%:5000}:5001/debug/health\"") asked=h answer=$health ;;
  "url = \"https://$ENDPOINT/v2/\"") asked=S answer=$endpoint ;;
  "url = \"http://$ENDPOINT/v2/\"") asked=p answer=$endpoint ;;
  *) asked=x answer=000 ;;
esac
printf "$asked" >>"${0%/*}/asked"
echo "0 $answer "`)
			n.env = append(n.env, "ENDPOINT="+test.endpoint[strings.LastIndex(test.endpoint, "/")+1:])
			answers := func(of [2]string) {
				file := filepath.Join(n.tools, "answers")
				must(t, os.WriteFile(file+".new", []byte(of[0]+" "+of[1]+"\n"), 0o600), os.Rename(file+".new", file))
			}
			asked := func() string {
				content, _ := os.ReadFile(filepath.Join(n.tools, "asked"))
				return string(content)
			}
			answers(test.first)
			p := n.startFor(t, nodeconfig.Registry{Upstream: "alpha.test", Endpoint: test.endpoint, UpstreamURL: "https://alpha.test"})
			p.until("20 probes", func() bool { return len(asked()) >= 20 })
			answers(test.then)
			p.until("100 more", func() bool { return len(asked()) >= 120 })
			p.state("alpha.test", test.state, "")
			p.stop()
			if !regexp.MustCompile(test.asks).MatchString(asked()) {
				t.Errorf("the script asks %s, want %s", asked(), test.asks)
			}
		})
	}
}

// TestLoopBelievesTheEndpoint: whatever the health port answers, nothing changes and no connection
// is reset. Failures of the endpoint are detected even if the health port is fine.
func TestLoopBelievesTheEndpoint(t *testing.T) {
	t.Parallel()
	ca := newTestCA(t, "cache")
	for name, answers := range map[string]http.HandlerFunc{
		"is well": ready, "503": answer(503), "404": answer(404), "204": answer(204), "401": answer(401), "hangs": hang,
		"redirects": http.RedirectHandler("/", http.StatusFound).ServeHTTP,
		"is cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			w.WriteHeader(http.StatusOK)
		},
		"refuses": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, asked, c := newNode(t), atomic.Int32{}, newCache(t, "alpha.test", ca, ready)
			n.tool(t, "ss", `echo "$*" >>"${0%/*}/reset"`)
			n.env = append(n.env, "PROBE_TIMEOUT=1")
			if answers != nil {
				n.env = append(n.env, "HEALTH_PORT="+healthPort(t, &asked, answers))
			}
			p := n.startFor(t, c.Registry)
			p.state("alpha.test", "mirror", "")
			before := c.requests.Load()
			p.rounds(45)
			p.state("alpha.test", "mirror", c.Endpoint+" answers")
			byTLS := c.requests.Load() - before
			if count := asked.Load(); name == "is well" && (byTLS > 5 || count < 40) ||
				name != "is well" && (byTLS < 40 || count > 3 || count == 0 && answers != nil) {
				t.Errorf("the health port is asked %d times and the endpoint %d times in 45 rounds", count, byTLS)
			}
			n.expectKind(t, c.Registry, "mirror")
			c.become(answer(500))
			p.state("alpha.test", "direct", c.Endpoint+" answers 500")
			n.expectKind(t, c.Registry, "none")
			calls, _ := os.ReadFile(filepath.Join(n.tools, "reset"))
			if log := p.stop(); strings.Count(log, "alpha.test: ") != 2 || len(calls) > 0 {
				t.Errorf("connections are reset: %s; the log is\n%s", calls, log)
			}
		})
	}
}

// healthPort starts the health port of a cache, and returns its number.
func healthPort(t *testing.T, asked *atomic.Int32, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/debug/health" || r.Method != http.MethodGet {
			t.Errorf("the script asks the health port for %s %s", r.Method, r.URL.Path)
		}
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port)
}

// Endpoints of caches consist of an IP address and a port, but an argument may contain others.
const v4, v6, named, plain = "https://10.4.12.9:5000", "https://[2001:db8::1]:5000", "https://cache", "http://10.4.12.9:5000"

// curl before 7.66 asks one cache after the other, and before 7.75 it reports no errors.
func TestLoopNeedsNoNewCurl(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_TIMEOUT=1")
	n.tool(t, "curl", `[[ $* == *--parallel* ]] && exit 2
[[ $1 == --disable && $2 == --config ]] || exit 2
sed 's/ %{errormsg}//' "$3" | exec "$real" --disable --config -`)
	good, hanging := newCache(t, "alpha.test", newTestCA(t, "cache"), ready), newCache(t, "beta.test", nil, hang)
	p := n.startFor(t, hanging.Registry, good.Registry)
	p.state("alpha.test", "mirror", "")
	p.state("beta.test", "direct", hanging.Endpoint+" does not answer (000)")
	good.become(answer(500))
	p.state("alpha.test", "direct", "answers 500")
}

func TestLoopIgnoresTheProxyOfTheNode(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "http_proxy=http://127.0.0.1:1", "all_proxy=http://127.0.0.1:1")
	n.startFor(t, newCache(t, "alpha.test", nil, ready).Registry).state("alpha.test", "mirror", "")
}

func TestLoopEndsACurlThatHangs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.env = append(n.env, "PROBE_TIMEOUT=0.5")
	n.tool(t, "curl", `[[ $* != *--version* ]] || exit 0
trap '' TERM
exec sleep 1000`)
	c := newCache(t, "alpha.test", nil, ready)
	p := n.startFor(t, c.Registry)
	p.state("alpha.test", "direct", "does not answer (000)")
	n.repair(t, "curl")
	p.state("alpha.test", "mirror", "")
}
