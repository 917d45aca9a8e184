package nodeconfig_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// TestBusyCacheServesOn runs the real ss. The cache does not answer probes in time, but continues
// the answers that it has begun. Only pulls that get nothing may be reset.
func TestBusyCacheServesOn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ss"); err != nil || os.Geteuid() != 0 {
		t.Skip("only root can reset connections, with ss of iproute2")
	}
	const unread = 64 << 10
	isBusy, done := atomic.Bool{}, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := func(bytes int) {
			_, _ = w.Write(make([]byte, bytes))
			_ = http.NewResponseController(w).Flush()
		}
		switch r.URL.Path {
		case "/v2/":
			if isBusy.Load() {
				<-r.Context().Done()
			}
		case "/flows":
			for tick := time.Tick(50 * time.Millisecond); ; {
				select {
				case <-tick:
					begin(1)
				case <-done:
					return
				case <-r.Context().Done():
					return
				}
			}
		case "/unread":
			begin(unread)
			<-done
		case "/stalls":
			begin(1)
			<-r.Context().Done()
		case "/waits":
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)

	n := newNode(t)
	n.env = append(n.env, "PROBE_TIMEOUT=0.5", "SILENCE=2000")
	p := n.startFor(t, nodeconfig.Registry{Upstream: "alpha.test", Endpoint: server.URL, UpstreamURL: "https://alpha.test"})
	p.state("alpha.test", "mirror", "")
	pulls := map[string]*bufio.Reader{}
	for _, path := range []string{"/flows", "/unread", "/stalls", "/waits"} {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		must(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		_, err = fmt.Fprintf(connection, "GET %s HTTP/1.0\r\n\r\n", path)
		must(t, err, connection.SetDeadline(time.Now().Add(patience)))
		pulls[path] = bufio.NewReaderSize(connection, 16)
	}
	flowed := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, pulls["/flows"])
		flowed <- err
	}()
	isBusy.Store(true)
	p.state("alpha.test", "direct", "does not answer")
	for _, path := range []string{"/stalls", "/waits"} {
		if _, err := io.Copy(io.Discard, pulls[path]); !errors.Is(err, syscall.ECONNABORTED) {
			t.Errorf("%s is not reset, but ends with %v", path, err)
		}
	}
	p.rounds(12) // connections are reset in ten rounds
	close(done)
	if err := <-flowed; err != nil {
		t.Errorf("a pull that makes progress ends with %v", err)
	}
	if got, err := io.Copy(io.Discard, pulls["/unread"]); err != nil || got < unread {
		t.Errorf("a pull whose client is slow ends with %v after %d bytes", err, got)
	}
}

// TestSilentConnections: the output of ss about a connection decides whether the script resets it.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	const cubic = " cubic wscale:7,7 rto:204 rtt:0.5/0.2 mss:1448 cwnd:10 bytes_acked:120 "
	for name, test := range map[string]struct {
		says  string // %s is the endpoint
		reset bool
	}{
		"no answer":      {"ESTAB 0 0 10.0.0.1:4711 %s\n\t" + cubic + "segs_out:3 lastsnd:20 lastrcv:20 lastack:20\n", true},
		"flows":          {"ESTAB 0 0 10.0.0.1:4711 %s\n\t" + cubic + "bytes_received:9 lastsnd:9000 lastrcv:20 lastack:20\n", false},
		"flows just now": {"ESTAB 0 0 10.0.0.1:4711 %s\n\t" + cubic + "bytes_received:9 lastsnd:9000\n", false},
		"not for long":   {"ESTAB 0 0 10.0.0.1:4711 %s\n\t" + cubic + "bytes_received:9 lastrcv:2999 lastack:20\n", false},
		"stalls":         {"ESTAB 0 0 10.0.0.1:4711 %s\n\t" + cubic + "bytes_received:9 lastrcv:3000 lastack:20\n", true},
		"unread":         {"ESTAB 12 0 10.0.0.1:4711 %s\n\t" + cubic + "bytes_received:9 lastrcv:9000 lastack:20\n", false},
		"connects":       {"SYN-SENT 0 1 10.0.0.1:4711 %s\n\t cubic rto:1000 lastsnd:35829552 lastrcv:35829552\n", true},
		"columns":        {"ESTAB      0      0      10.0.0.1:4711         %s     \n\t" + cubic + "lastrcv:20    \n", true},
		"a title":        {"State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\nESTAB 0 0 10.0.0.1:4711 %s\n\t" + cubic + "\n", true},
		"with a timer":   {"ESTAB 0 0 10.0.0.1:4711 %s timer:(keepalive,13sec,0)\n\t" + cubic + "\n", true},
		"no information": {"TIME-WAIT 0 0 10.0.0.1:4711 %s\nESTAB 0 0 10.0.0.1:4712 %[1]s\n\t" + cubic + "bytes_received:9 lastrcv:5\n", false},
		"no connection":  {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, c := newNode(t), newCache(t, "alpha.test", nil, hang)
			n.env = append(n.env, "PROBE_TIMEOUT=0.1")
			endpoint := strings.TrimPrefix(c.Endpoint, "http://")
			replace(t, filepath.Join(n.tools, "says"), strings.ReplaceAll(strings.ReplaceAll(test.says, "%[1]s", endpoint), "%s", endpoint), 0o644)
			n.tool(t, "ss", `if [[ $* == *--kill* ]]; then echo "$*" >>"${0%/*}/reset"; else echo "$*" >>"${0%/*}/listed"; cat "${0%/*}/says"; fi`)
			p := n.startFor(t, c.Registry)
			p.state("alpha.test", "direct", "")
			p.rounds(2)
			p.stop()
			listed, _ := os.ReadFile(filepath.Join(n.tools, "listed"))
			if line, _, _ := strings.Cut(string(listed), "\n"); line != "-tin dst "+endpoint {
				t.Errorf("connections are listed by ss %s", line)
			}
			reset, _ := os.ReadFile(filepath.Join(n.tools, "reset"))
			want := "-tn --kill ( src 10.0.0.1:4711 and dst " + endpoint + " )\n"
			if got := string(reset); test.reset && !strings.HasPrefix(got, want) || !test.reset && got != "" {
				t.Errorf("connections are reset by ss %s, want %v by ss %s", got, test.reset, want)
			}
		})
	}
}

// TestLoopResetsConnections: pulls that wait for a cache that does not answer fail within ten
// rounds. By then hosts.toml has changed, so they bypass the cache. Other pulls continue.
func TestLoopResetsConnections(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.env = append(n.env, "PROBE_TIMEOUT=1")
	n.tool(t, "ss", `[[ ! -e "$CERTS_DIR/beta.test" ]] || echo "hosts.toml is still there" >>"${0%/*}/reset"
if [[ $* == *--kill* ]]; then echo "$*" >>"${0%/*}/reset"; exit 1; fi
for endpoint in "$@"; do
  [[ $endpoint != *:* ]] || printf 'ESTAB 0 0 10.0.0.1:4711 %s\n\t cubic lastrcv:9\n' "$endpoint"
done`)
	ca := newTestCA(t, "old")
	busy, stopping := newCache(t, "alpha.test", nil, ready), newCache(t, "gamma.test", nil, ready)
	silent, also := newCache(t, "beta.test", nil, ready), newCache(t, "epsilon.test", nil, ready)
	foreign, expired := newCache(t, "zeta.test", nil, ready), newCache(t, "delta.test", ca, ready)
	caches := []*cache{busy, silent, also, stopping, expired}
	n.write(t, "zeta.test", unmanaged)
	p := n.startFor(t, busy.Registry, silent.Registry, also.Registry, stopping.Registry, expired.Registry, foreign.Registry)
	for _, c := range caches {
		p.state(c.Upstream, "mirror", "")
	}
	busy.become(answer(503))
	silent.become(hang)
	also.become(hang)
	foreign.become(hang)
	stopping.server.Close()
	expired.certificate.Store(newTestCA(t, "new").certificateFor(t, valid))
	for _, c := range caches {
		p.state(c.Upstream, "direct", "")
	}
	p.rounds(12)
	p.stop()
	calls, err := os.ReadFile(filepath.Join(n.tools, "reset"))
	for _, c := range append(caches, foreign) {
		want := map[string]int{"beta.test": 10, "epsilon.test": 10}[c.Upstream]
		if count := strings.Count(string(calls), "dst "+strings.TrimPrefix(c.Endpoint, "http://")); count != want {
			t.Errorf("connections to %s were reset %d times, want %d", c.Upstream, count, want)
		}
	}
	if line := regexp.MustCompile(`^(-tn --kill \( src \S+ and dst \S+ \)( or \( src \S+ and dst \S+ \))?\n)+$`); !line.Match(calls) {
		t.Errorf("ss was called with %s, %v", calls, err)
	}
}
