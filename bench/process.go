// Package bench contains what the benchmarks below it share: programs as background processes,
// their CPU time and memory, API servers with their audit logs, and goals.
//
// The package must not depend on what a program does.
package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

const (
	readyInterval = 100 * time.Millisecond
	readyTimeout  = 2 * time.Minute
	stopTimeout   = 15 * time.Second // between SIGTERM and SIGKILL
	logLines      = 20               // of the log in an error
)

// Program describes a process.
type Program struct {
	Name        string // for messages and for the name of the log file
	Path        string // of the binary
	Arguments   []string
	Environment []string // in addition to the variables of this process
	Folder      string   // for <Name>.log
	// Ready is a URL that answers 200 once the process is ready. Empty means that Start does not
	// wait.
	Ready string
}

// Process is a running program.
type Process struct {
	name  string
	log   string // path
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended
	ended error         // the result of cmd.Wait
}

// Start returns once the process is ready. The caller must call Stop.
func (o Program) Start(ctx context.Context) (*Process, error) {
	p := &Process{name: o.Name, log: filepath.Join(o.Folder, o.Name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("create the log of the %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	// This does not use CommandContext, because only Stop may end the process.
	p.cmd = exec.Command(o.Path, o.Arguments...) //nolint:noctx // see above
	p.cmd.Env = append(os.Environ(), o.Environment...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end the process
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", p.name, err)
	}
	go func() {
		p.ended = p.cmd.Wait()
		close(p.done)
	}()
	if o.Ready != "" {
		if err := p.awaitReady(ctx, o.Ready); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
	}
	return p, nil
}

// Running returns an error with the last lines of the log if the process has ended.
func (p *Process) Running() error {
	select {
	case <-p.done:
		return fmt.Errorf("the %s exited: %w\n%s", p.name, p.ended, p.tail())
	default:
		return nil
	}
}

// Stop ends the process. It returns nil if the process has already ended.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("the %s did not exit within %s after SIGTERM\n%s", p.name, stopTimeout, p.tail())
}

func (p *Process) awaitReady(ctx context.Context, url string) error {
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := p.Running(); err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // the process does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("the %s was not ready within %s: %w\n%s", p.name, readyTimeout, err, p.tail())
	}
	return nil
}

func (p *Process) tail() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return command.Tail(string(bytes.TrimSpace(log)), logLines)
}

// FreePorts returns n different ports of this machine on which no process listens.
func FreePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // after the loop, so that all ports differ
		ports = append(ports, strings.TrimPrefix(listener.Addr().String(), "127.0.0.1:"))
	}
	return ports, nil
}
