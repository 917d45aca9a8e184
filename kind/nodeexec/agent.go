package nodeexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// outputTimeout bounds how long the output of a command may be open after the command has ended. A
// process that the command leaves behind may keep the output open forever.
const outputTimeout = 10 * time.Second

// Serve runs the commands that a client requests through in. At the end of this input, Serve kills
// the commands that still run. All commands get this process's environment and folder.
//
// Serve trusts everyone who can write this input, since they can also start this process or any
// other.
func Serve(in io.ReadCloser, out io.WriteCloser) error {
	// Handle SIGPIPE: if out is closed, this process must still kill its commands before it ends.
	// After signal.Ignore, the commands would also ignore SIGPIPE.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := rpc.NewServer()
	if err := server.RegisterName("Agent", &agent{ctx: ctx}); err != nil {
		return fmt.Errorf("register the agent: %w", err)
	}
	server.ServeConn(stream{watchedReader{in, cancel}, out})
	return nil
}

// Command is a request to run a command.
type Command struct {
	Number uint64 // unique in a connection; identifies the command for Kill
	Argv   []string
	Stdin  []byte
}

// Result is the output and the exit code of a command.
type Result struct {
	Output
	Code int // see Conn.Run
}

// agent implements the methods that clients call.
type agent struct {
	ctx   context.Context
	kills sync.Map // a chan struct{} for each command, by its number
}

// Ping tells a client that it is connected.
func (*agent) Ping(struct{}, *struct{}) error { return nil }

// Kill kills the process group of a command, which may not have started yet.
func (a *agent) Kill(number uint64, _ *struct{}) error {
	close(a.killed(number))
	return nil
}

// killed returns the channel that Kill closes.
func (a *agent) killed(number uint64) chan struct{} {
	found, _ := a.kills.LoadOrStore(number, make(chan struct{}))
	channel, _ := found.(chan struct{})
	return channel
}

// Run runs a command until it ends.
func (a *agent) Run(c Command, result *Result) error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	killed := a.killed(c.Number)
	defer a.kills.Delete(c.Number)
	go func() {
		select {
		case <-killed:
			cancel()
		case <-ctx.Done():
		}
	}()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin = bytes.NewReader(c.Stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, outputTimeout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	result.Code = exitCode(cmd.Run(), &stderr)
	result.Output = Output{stdout.Bytes(), stderr.Bytes()}
	return nil
}

// exitCode returns the exit code for an error of exec.Cmd. If the command did not run or its output
// is not complete, exitCode writes the reason to stderr. `docker exec` and shells use the same
// codes.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal())
		}
		return failed.ExitCode()
	}
	fmt.Fprintln(stderr, err)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return 127
	case errors.Is(err, exec.ErrWaitDelay):
		return 125
	}
	return 126
}
