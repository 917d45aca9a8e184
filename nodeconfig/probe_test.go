package nodeconfig_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// TestLoopAsksWithoutTLS: a handshake costs a cache much more than an answer, so only one of 40
// rounds has one, and every probe that may change the state. A stock registry needs it always. The
// pattern is how a cache is asked: by HTTP (h) or HTTPS (S).
func TestLoopAsksWithoutTLS(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, then [2]string // the answers to HTTP and HTTPS, then those after 20 probes
		state, asks string
	}{
		"healthy":            {[2]string{"200", "200"}, [2]string{"200", "200"}, "mirror", `^Sh{0,39}(Sh{39})+Sh*$`},
		"TLS begins to fail": {[2]string{"200", "200"}, [2]string{"200", "000"}, "direct", `^S[Sh]{0,60}SS{20}`},
		"cannot serve":       {[2]string{"200", "200"}, [2]string{"400", "503"}, "direct", `^S[Sh]*hSS{20}`},
		"only HTTP fails":    {[2]string{"200", "200"}, [2]string{"000", "200"}, "mirror", `^S[Sh]*(hS){15}`},
		"a stock registry":   {[2]string{"400", "200"}, [2]string{"400", "200"}, "mirror", `^SS?(hS{1,41})+h?$`},
		"a new registry":     {[2]string{"400", "200"}, [2]string{"200", "200"}, "mirror", `^SS?(hS{1,41})+h{30}`},
		"an old certificate": {[2]string{"200", "000"}, [2]string{"200", "000"}, "direct", `^S+$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.env = append(n.env, "PROBE_INTERVAL=1", "PROBE_AGAIN=1")
			n.tool(t, "curl", `[[ $* != *--version* ]] || exit 0
read -r plain secure <"${0%/*}/answers"
if grep -q '"https:' "$RUN_DIR/requests"; then asked=S answer=$secure; else asked=h answer=$plain; fi
printf "$asked" >>"${0%/*}/asked"
echo "0 $answer "`)
			answers := func(of [2]string) {
				file := filepath.Join(n.tools, "answers")
				must(t, os.WriteFile(file+".new", []byte(of[0]+" "+of[1]+"\n"), 0o600), os.Rename(file+".new", file))
			}
			asked := func() string {
				content, _ := os.ReadFile(filepath.Join(n.tools, "asked"))
				return string(content)
			}
			answers(test.first)
			p := n.startFor(t, nodeconfig.Registry{Upstream: "alpha.test", Endpoint: "https://10.4.12.9:5000", UpstreamURL: "https://alpha.test"})
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

// curl before 7.66 asks one cache after the other, and before 7.75 it tells no errors.
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
