package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// asCommand is an environment variable that makes the test binary run the command.
const asCommand = "REGISTRY_CACHE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// child is the command as a separate process.
type child struct {
	cmd *exec.Cmd
	log *bufio.Scanner
	// rest is a channel that drain closes after it has read the whole log.
	rest    chan struct{}
	lines   []string
	started time.Time
}

// lifetime limits how long a child runs, so that a missing log line does not block a test.
const lifetime = 3 * patience

func startChild(t testing.TB, args ...string) *child {
	t.Helper()
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &child{cmd: cmd, log: bufio.NewScanner(log), started: started}
}

// expect returns the first log line that contains the text.
func (c *child) expect(t testing.TB, text string) string {
	t.Helper()
	var log []string
	for c.log.Scan() {
		if log = append(log, c.log.Text()); strings.Contains(c.log.Text(), text) {
			return c.log.Text()
		}
	}
	end := "its log ended"
	if time.Since(c.started) >= lifetime {
		end = fmt.Sprintf("it was killed %s after its start", lifetime)
	}
	t.Fatalf("the command does not log %q, %s:\n%s", text, end, strings.Join(log, "\n"))
	return ""
}

// terminate sends SIGTERM and returns the exit code, the time until the exit and the log.
func (c *child) terminate(t *testing.T) (code int, took time.Duration, log string) {
	t.Helper()
	start := time.Now()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.drain()
	<-c.rest
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode(), time.Since(start), strings.Join(c.lines, "\n")
}

// drain reads the log until its end, because a process blocks when it writes to a full pipe.
func (c *child) drain() {
	if c.rest != nil {
		return
	}
	c.rest = make(chan struct{})
	go func() {
		defer close(c.rest)
		for c.log.Scan() {
			c.lines = append(c.lines, c.log.Text())
		}
	}()
}

func writeConfig(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSIGTERMCutsRequestsThatDoNotEnd: a client that does not read its blob is cut when the drain
// timeout ends.
func TestSIGTERMCutsRequestsThatDoNotEnd(t *testing.T) {
	upstream := newOutage(t, false)
	layer := static.NewLayer(make([]byte, 64<<20), types.OCILayer)
	reference := parse(t, upstream.URL, repository+":large")
	if err := remote.WriteLayer(reference.Context(), layer); err != nil {
		t.Fatal(err)
	}
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	cache, _ := cacheOf(t, upstream, false)
	config := strings.Replace(cache.config(upstream.URL), "draintimeout: 15s", "draintimeout: 300ms", 1)
	c := startChild(t, "serve", writeConfig(t, config))
	c.expect(t, "cache listening on")
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodGet, cache.url+"/v2/"+repository+"/blobs/"+digest.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	defer func() { _ = response.Body.Close() }()
	code, took, log := c.terminate(t)
	if code != program.ExitFailed || took > patience || !strings.Contains(log, "cut after the drain timeout of 300ms") {
		t.Errorf("exit code %d after %s:\n%s", code, took, log)
	}
}

func TestSIGTERMEndsPause(t *testing.T) {
	c := startChild(t, "pause")
	c.expect(t, "pausing")
	if code, took, log := c.terminate(t); code != program.ExitFine || took > patience {
		t.Errorf("exit code %d after %s:\n%s", code, took, log)
	}
}
