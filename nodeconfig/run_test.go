package nodeconfig_test

import (
	"bufio"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// patience limits every wait for the script. Only a script that hangs reaches it.
const patience = 2 * time.Minute

// node is a directory that represents the certs.d of a node. Tests run the real script in bash.
type node struct {
	certs string
	env   []string
	tools string // a directory first in PATH, for fake commands
}

func newNode(t *testing.T) *node {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the script needs %s: %v", tool, err)
		}
	}
	n := &node{certs: filepath.Join(t.TempDir(), "certs.d"), tools: t.TempDir()}
	n.env = []string{"CERTS_DIR=" + n.certs, "PATH=" + n.tools + ":" + os.Getenv("PATH"), "PROBE_INTERVAL=0.02", "WATCH_INTERVAL=0"}
	// On a busy machine, a slow cache must not look like one that does not answer.
	n.env = append(n.env, "PROBE_CONNECT_TIMEOUT=60", "PROBE_TIMEOUT=60")
	return n
}

// process is a running script.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	writer *io.PipeWriter
	lines  chan string
	log    []string
	ended  func() error // waits until the script and its children exit
}

func (n *node) start(t *testing.T, arguments ...string) *process {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.sh")
	if err := os.WriteFile(script, []byte(nodeconfig.Script()), nodeconfig.ScriptMode); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	reader, writer := io.Pipe()
	p := &process{t: t, writer: writer, cmd: exec.CommandContext(ctx, "bash", append([]string{script}, arguments...)...), lines: make(chan string, 1000)}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = n.env, writer, writer
	p.cmd.WaitDelay = patience // a child that outlives the script keeps the output open
	// On SIGTERM the script also ends its children. A shell makes its background jobs ignore SIGINT,
	// and the tests may be such a job.
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.ended = sync.OnceValue(p.cmd.Wait)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { // runs before the folder, in which the script may write, is removed
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		go func() {
			for range p.lines {
				continue
			}
		}()
		_ = p.ended()
		_ = writer.Close()
	})
	return p
}

// expect waits for a log line that contains text.
func (p *process) expect(text string) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the script ended without logging %q; it logged:\n%s", text, strings.Join(p.log, "\n"))
			}
			if p.log = append(p.log, line); strings.Contains(line, text) {
				return
			}
		case <-deadline:
			p.t.Fatalf("no log line with %q after %s; it logged:\n%s", text, patience, strings.Join(p.log, "\n"))
		}
	}
}

// wait waits until the script and all of its children have exited (they keep its output open), and
// returns the log.
func (p *process) wait() string {
	p.t.Helper()
	err := p.ended()
	_ = p.writer.Close()
	for line := range p.lines {
		p.log = append(p.log, line)
	}
	log := strings.Join(p.log, "\n")
	if err != nil {
		p.t.Fatalf("the script must end with 0, got %v; it logged:\n%s", err, log)
	}
	return log
}

// run runs the script until it exits.
func (n *node) run(t *testing.T, registries ...nodeconfig.Registry) string {
	t.Helper()
	return n.start(t, arguments(registries...)...).wait()
}

func arguments(registries ...nodeconfig.Registry) []string {
	var arguments []string
	for _, registry := range registries {
		arguments = append(arguments, registry.Argument())
	}
	return arguments
}

func (n *node) path(upstream string) string {
	return filepath.Join(n.certs, upstream, nodeconfig.HostsFile)
}

// write creates a hosts.toml.
func (n *node) write(t *testing.T, upstream, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(n.certs, upstream), 0o755); err != nil {
		t.Fatal(err)
	}
	// Write atomically: a watching script must not see a partial file.
	written := filepath.Join(t.TempDir(), "hosts.toml")
	if err := os.WriteFile(written, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(written, n.path(upstream)); err != nil {
		t.Fatal(err)
	}
}

// tool puts a fake command first in PATH. Its body may call the real command as "$real".
func (n *node) tool(t *testing.T, name, body string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	n.standIn(t, name, "real="+path+"\n"+body)
}

// standIn puts a fake command first in PATH. The real command may be missing on this machine.
func (n *node) standIn(t *testing.T, name, body string) {
	t.Helper()
	content := "#!/bin/bash\n" + body + "\n"
	if err := os.WriteFile(filepath.Join(n.tools, name), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// expectHosts checks that the hosts.toml of r has the expected content.
func (n *node) expectHosts(t *testing.T, r nodeconfig.Registry) {
	t.Helper()
	got, err := os.ReadFile(n.path(r.Upstream))
	if err != nil {
		t.Fatal(err)
	}
	if want := nodeconfig.HostsTOML(r); string(got) != want {
		t.Errorf("hosts.toml of %s:\ngot:\n%s\nwant:\n%s", r.Upstream, got, want)
	}
}

// expectEntries checks the names of everything in certs.d, including temporary files.
func (n *node) expectEntries(t *testing.T, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(n.certs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("certs.d holds %q, want %q", got, want)
	}
}

// discard is the log of servers whose clients fail on purpose.
var discard = log.New(io.Discard, "", 0)

// cache is a fake cache: an HTTP server with the handler of a test.
type cache struct {
	nodeconfig.Registry
	requests atomic.Int32
}

func newCache(t *testing.T, upstream string, handler http.HandlerFunc) *cache {
	t.Helper()
	c := &cache{}
	server := httptest.NewServer(c.serve(t, handler))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // runs first: a leftover client must not block the test
	c.Registry = nodeconfig.Registry{Upstream: upstream, Endpoint: server.URL, UpstreamURL: "https://" + upstream}
	return c
}

// serve counts the requests and checks that each is GET /v2/.
func (c *cache) serve(t *testing.T, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		if r.URL.Path != "/v2/" || r.Method != http.MethodGet {
			t.Errorf("the script asks for %s %s", r.Method, r.URL.Path)
		}
		handler(w, r)
	}
}

func ready(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// hang answers only after the client has canceled the request.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func answer(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}
