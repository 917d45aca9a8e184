package extension

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
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

const (
	readyInterval = 100 * time.Millisecond
	readyTimeout  = 2 * time.Minute
	// stopTimeout is the time between SIGTERM and SIGKILL.
	stopTimeout = 15 * time.Second
	// logLines is how many lines of the log an error shows.
	logLines = 20
)

// Options describe the process.
type Options struct {
	Program    string   // path of the binary
	Arguments  []string // of the chart; Start overrides those that only work in a pod
	Kubeconfig []byte   // for the seed
	Namespace  string   // of the Leases and the webhook's certificates
	Folder     string   // for extension.log and the files that the process needs
}

// Process is a running extension.
type Process struct {
	cmd    *exec.Cmd
	log    string        // path
	health string        // port
	done   chan struct{} // closed when the process has ended
	ended  error         // the result of cmd.Wait
}

// Start starts the extension and returns when it is ready. The caller must call Stop.
func Start(ctx context.Context, o Options) (*Process, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(o.Folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, o.Kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of the extension: %w", err)
	}
	p := &Process{log: filepath.Join(o.Folder, "extension.log"), health: ports[0], done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("creating the log of the extension: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	// Without CommandContext, because only Stop may end the process.
	p.cmd = exec.Command(o.Program, arguments(o, kubeconfig, ports)...) //nolint:noctx // see above
	p.cmd.Env = append(os.Environ(), "LEADER_ELECTION_NAMESPACE="+o.Namespace, "WEBHOOK_CONFIG_NAMESPACE="+o.Namespace)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end the process
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the extension: %w", err)
	}
	go func() {
		p.ended = p.cmd.Wait()
		close(p.done)
	}()
	if err := p.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// arguments returns the arguments of the chart, followed by arguments that override some of them.
// If a flag occurs twice, its last value is used.
func arguments(o Options, kubeconfig string, ports []string) []string {
	return append(append([]string(nil), o.Arguments...),
		"--kubeconfig="+kubeconfig,
		"--health-bind-address=127.0.0.1:"+ports[0],
		"--metrics-bind-address=127.0.0.1:"+ports[1],
		"--webhook-config-mode=url",
		"--webhook-config-url=127.0.0.1:"+ports[2],
		"--webhook-config-server-host=127.0.0.1",
		"--webhook-config-server-port="+ports[2],
		"--webhook-config-cert-dir="+filepath.Join(o.Folder, "certificates"),
	)
}

// Running returns an error with the last lines of the log if the process has ended.
func (p *Process) Running() error {
	select {
	case <-p.done:
		return fmt.Errorf("the extension exited: %w\n%s", p.ended, p.tail())
	default:
		return nil
	}
}

// Stop ends the process, or returns nil if the process has already ended.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("the extension did not exit within %s after SIGTERM\n%s", stopTimeout, p.tail())
}

func (p *Process) awaitReady(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if err := p.Running(); err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+p.health+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // the extension does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("the extension was not ready within %s: %w\n%s", readyTimeout, err, p.tail())
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

func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // after the loop, so that all ports differ
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// Usage is the CPU time and memory usage of a process.
type Usage struct {
	// CPU is user and system time since the start.
	CPU time.Duration
	// Resident is the memory in RAM now, Peak its maximum since the start. Both are in bytes.
	Resident, Peak uint64
}

// Usage reads the usage from the kernel, and fails if the process has ended.
func (p *Process) Usage() (Usage, error) {
	if err := p.Running(); err != nil {
		return Usage{}, err
	}
	usage, err := usageOf(p.cmd.Process.Pid)
	if err != nil {
		return Usage{}, fmt.Errorf("reading the CPU and memory of the extension: %w", err)
	}
	return usage, nil
}

func usageOf(pid int) (Usage, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, err
	}
	status, err := proc.NewStatus()
	if err != nil {
		return Usage{}, err
	}
	return Usage{
		CPU:      time.Duration(stat.CPUTime() * float64(time.Second)),
		Resident: status.VmRSS,
		Peak:     status.VmHWM,
	}, nil
}
