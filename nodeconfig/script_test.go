package nodeconfig_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// patience limits every wait for the script. Only a hanging script reaches it.
const patience = time.Minute

// node contains the folders of a node. Tests run the real script in bash.
type node struct {
	certs, run string
	env        []string
	tools      string // a directory first in PATH, for fake commands
}

func newNode(t *testing.T) *node {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the script needs %s: %v", tool, err)
		}
	}
	n := &node{certs: filepath.Join(t.TempDir(), "certs.d"), run: filepath.Join(t.TempDir(), "run"), tools: t.TempDir()}
	// On a busy machine, a slow cache must not look like one that does not answer. Caches have no
	// health port, unless a test starts one.
	n.env = []string{
		"CERTS_DIR=" + n.certs, "RUN_DIR=" + n.run, "PATH=" + n.tools + ":" + os.Getenv("PATH"),
		"PROBE_INTERVAL=20", "PROBE_AGAIN=10", "PROBE_TIMEOUT=60", "HEALTH_PORT=1",
	}
	return n
}

// process is a running script.
type process struct {
	t     *testing.T
	n     *node
	cmd   *exec.Cmd
	lines chan string
	log   []string
	ended func() error
}

func (n *node) start(t *testing.T, arguments ...string) *process {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.sh")
	if err := os.WriteFile(script, []byte(nodeconfig.Script()), nodeconfig.ScriptMode); err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	p := &process{t: t, n: n, cmd: exec.Command("bash", append([]string{script}, arguments...)...), lines: make(chan string, 10000)}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = n.env, writer, writer
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // see expectNoChildren
	p.ended = sync.OnceValue(func() error {
		limit := time.AfterFunc(patience, func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
		defer limit.Stop()
		defer func() { _ = writer.Close() }()
		return p.cmd.Wait()
	})
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { // runs before the removal of the folder, in which the script may write
		p.signal(syscall.SIGTERM)
		_ = p.ended()
	})
	return p
}

func (n *node) startFor(t *testing.T, registries ...nodeconfig.Registry) *process {
	t.Helper()
	var arguments []string
	for _, registry := range registries {
		arguments = append(arguments, registry.Argument())
	}
	return n.start(t, arguments...)
}

func (p *process) signal(signal syscall.Signal) { _ = p.cmd.Process.Signal(signal) }

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

// wait waits until the script has exited with 0, and returns the log.
func (p *process) wait() string {
	p.t.Helper()
	err := p.ended()
	for line := range p.lines {
		p.log = append(p.log, line)
	}
	log := strings.Join(p.log, "\n")
	if err != nil {
		p.t.Fatalf("the script must end with 0, got %v; it logged:\n%s", err, log)
	}
	return log
}

// stop stops the script as systemd does, and returns the log.
func (p *process) stop() string {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	return p.wait()
}

// until waits until the condition is true.
func (p *process) until(what string, condition func() bool) {
	p.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			state, _ := os.ReadFile(filepath.Join(p.n.run, "state"))
			p.t.Fatalf("not after %s: %s; the state is\n%s\nand the log\n%s", patience, what, state, p.stop())
		}
	}
}

// state waits until the state file contains the route and the reason for the upstream.
func (p *process) state(upstream, route, reason string) {
	p.t.Helper()
	p.until(upstream+" is "+route+": "+reason, func() bool {
		content, _ := os.ReadFile(filepath.Join(p.n.run, "state"))
		return slices.ContainsFunc(strings.Split(string(content), "\n"), func(line string) bool {
			return strings.HasPrefix(line, upstream+" "+route+" ") && strings.Contains(line, reason)
		})
	})
}

// rounds waits for more rounds of the loop, each of which writes a new state file.
func (p *process) rounds(count int) {
	p.t.Helper()
	last, _ := os.Stat(filepath.Join(p.n.run, "state"))
	p.until("the loop goes on", func() bool {
		next, err := os.Stat(filepath.Join(p.n.run, "state"))
		if err == nil && (last == nil || !next.ModTime().Equal(last.ModTime())) {
			last, count = next, count-1
		}
		return count < 0 // the first round may have begun before
	})
}

// kind returns the kind of the hosts.toml of r: mirror, direct, none or other.
func (n *node) kind(r nodeconfig.Registry) string {
	direct := r
	direct.Endpoint = ""
	switch content, err := os.ReadFile(n.path(r.Upstream)); {
	case err != nil:
		return "none"
	case string(content) == hostsTOML(r):
		return "mirror"
	case string(content) == hostsTOML(direct):
		return "direct"
	}
	return "other"
}

// expectKind checks the kind of the hosts.toml of r.
func (n *node) expectKind(t *testing.T, r nodeconfig.Registry, want string) {
	t.Helper()
	if got := n.kind(r); got != want {
		content, err := os.ReadFile(n.path(r.Upstream))
		t.Errorf("hosts.toml of %s is %s, want %s:\n%s%v", r.Upstream, got, want, content, err)
	}
}

func (n *node) path(upstream string) string {
	return filepath.Join(n.certs, upstream, nodeconfig.HostsFile)
}

// write creates a hosts.toml.
func (n *node) write(t *testing.T, upstream, content string) {
	t.Helper()
	replace(t, n.path(upstream), content, 0o644)
}

// replace writes a file atomically, so that a running script sees all of it or nothing.
func replace(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	written := filepath.Join(t.TempDir(), "new")
	must(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(written, []byte(content), mode), os.Rename(written, file))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tool puts a fake command first in PATH. Its body may call the real command, if it exists, as
// "$real".
func (n *node) tool(t *testing.T, name, body string) {
	t.Helper()
	path, _ := exec.LookPath(name)
	replace(t, filepath.Join(n.tools, name), "#!/bin/bash\nreal="+path+"\n"+body+"\n", 0o755)
}

// repair makes a fake command act as the real one does.
func (n *node) repair(t *testing.T, name string) {
	t.Helper()
	n.tool(t, name, `exec "$real" "$@"`)
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
	if !slices.Equal(got, want) {
		t.Errorf("certs.d holds %q, want %q", got, want)
	}
}
