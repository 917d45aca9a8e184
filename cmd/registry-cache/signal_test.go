package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

func startChild(t *testing.T, args ...string) *child {
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
func (c *child) expect(t *testing.T, text string) string {
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

// ended waits for the process to exit. It returns the exit code and the rest of the log.
func (c *child) ended(within time.Duration) (code int, log string, ended bool) {
	c.drain()
	select {
	case <-c.rest:
		_ = c.cmd.Wait()
		return c.cmd.ProcessState.ExitCode(), strings.Join(c.lines, "\n"), true
	case <-time.After(within):
		return 0, "", false
	}
}

func writeConfig(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSIGTERMEndsServeWhileTheUpstreamHangsAtTheStart(t *testing.T) {
	// The probe ends after 5 s. A busy machine may delay the signal for that long, but not five times
	// in a row.
	for range 5 {
		if endsWhileAsking(t) {
			return
		}
	}
	t.Error("the command waits for its upstream before it exits")
}

// endsWhileAsking returns whether the command exited before its upstream answered.
func endsWhileAsking(t *testing.T) bool {
	t.Helper()
	asked := make(chan struct{}, 10)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(hanging.CloseClientConnections)
	c := startChild(t, "serve", writeConfig(t,
		"version: 0.1\nstorage: {inmemory: {}}\nhttp: {addr: 127.0.0.1:0}\nproxy: {remoteurl: "+hanging.URL+"}\n"))
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("the upstream gets no request")
	}
	code, took, log := c.terminate(t)
	if code != program.ExitFine {
		t.Errorf("exit code %d after %s:\n%s", code, took, log)
	}
	// If the log contains "stopping", the probe ended before the signal arrived, and the cache had
	// begun to serve. This happens if the machine is busy and delays the signal.
	return !strings.Contains(log, "stopping")
}

func TestSIGTERMCutsRequestsThatDoNotEnd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "registry.sock")
	c := startChild(t, "serve", writeConfig(t,
		"version: 0.1\nstorage: {inmemory: {}}\nhttp: {net: unix, addr: "+socket+", draintimeout: 300ms}\n"))
	c.expect(t, "listening on")
	startUpload(t, socket)
	code, took, log := c.terminate(t)
	if code != program.ExitFailed || took > patience || !strings.Contains(log, "longer than the drain timeout of 300ms were cut") {
		t.Errorf("exit code %d after %s:\n%s", code, took, log)
	}
}

// startUpload starts an upload whose body never arrives. It returns when the registry waits for it.
func startUpload(t *testing.T, socket string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		ExpectContinueTimeout: patience,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	response, err := client.Post("http://registry/v2/app/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()

	reading := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reading) }})
	body, never := io.Pipe()
	t.Cleanup(func() { _ = never.Close() })
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, response.Header.Get("Location"), body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Expect", "100-continue")
	go func() {
		if response, err := client.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	select {
	case <-reading:
	case <-time.After(patience):
		t.Fatal("the registry does not read the upload")
	}
}

func TestSIGTERMEndsPause(t *testing.T) {
	c := startChild(t, "pause")
	c.expect(t, "pausing")
	if code, took, log := c.terminate(t); code != program.ExitFine || took > patience {
		t.Errorf("exit code %d after %s:\n%s", code, took, log)
	}
}
