// Package nodeexec runs many commands on a machine through one long-lived agent program. This
// avoids the processes of a `docker exec` for each command.
//
// Agent and client speak net/rpc over the agent's standard input and output.
//
// Nothing in the package is specific to Docker or kind. The package is linked into the agent, so it
// imports little.
package nodeexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	// ErrNotRun reports that a command was not run, because there is no connection.
	ErrNotRun = errors.New("the command was not run by the agent")
	// ErrBroken reports that the connection broke while a command ran. The command may have run
	// completely, partly or not at all.
	ErrBroken = errors.New("the connection to the agent broke while the command ran")
)

// Output contains what a command has written.
type Output struct{ Stdout, Stderr []byte }

// Conn is a connection to an agent. Its methods may be used concurrently.
type Conn struct {
	client *rpc.Client
	ended  chan struct{}
	end    func()        // closes ended
	last   atomic.Uint64 // the number of the last command
}

// stderrTimeout bounds how long standard error may be open after the agent has ended.
const stderrTimeout = 5 * time.Second

// Dial starts a program that runs Serve, such as `docker exec -i NODE AGENT`, with env as its whole
// environment, and connects to it. ctx bounds Dial only.
//
// The program ends when the connection or this process ends. It gets no signals from a terminal, so
// that this process can still use it to clean up after Ctrl-C.
func Dial(ctx context.Context, argv, env []string) (*Conn, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), argv[0], argv[1:]...)
	cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &stderr, stderrTimeout
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	c := &Conn{ended: make(chan struct{})}
	c.end = sync.OnceFunc(func() { close(c.ended) })
	c.client = rpc.NewClient(stream{watchedReader{out, c.end}, in})
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		<-c.ended
		_ = cmd.Wait() // the errors of the commands are more precise
	}()
	if err := c.call(ctx, "Agent.Ping", struct{}{}, nil); err != nil {
		c.Close()
		_ = cmd.Process.Kill() // an error means that the program has ended
		c.end()                // the answer may come from another program, such as an error of Docker
		<-waited
		return nil, fmt.Errorf("connect to the agent: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return c, nil
}

// Close ends the connection, the agent and its commands. It does not wait for their end.
func (c *Conn) Close() { _ = c.client.Close() } // an error means that the connection has ended

// Ended returns a channel that is closed when the connection has ended.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Run runs a command without a shell, with stdin as input, and returns the output when it has
// ended.
//
// If the command failed, the error contains the exit code. It is 128 plus the number of the signal
// that killed the command, 127 if the program does not exist, and 126 if it cannot be executed. The
// error wraps ErrNotRun or ErrBroken if the connection failed. When ctx ends, Run returns the error
// of ctx at once, and the agent kills the command's process group.
func (c *Conn) Run(ctx context.Context, argv []string, stdin []byte) (Output, error) {
	select {
	case <-c.ended:
		return Output{}, ErrNotRun
	default:
	}
	command := Command{Number: c.last.Add(1), Argv: argv, Stdin: stdin}
	result := &Result{}
	err := c.call(ctx, "Agent.Run", command, result)
	switch {
	case ctx.Err() != nil && err != nil:
		go func() { _ = c.client.Call("Agent.Kill", command.Number, nil) }() // may block as long as the agent does
		return Output{}, err
	case err != nil:
		c.end()
		return Output{}, fmt.Errorf("%w: %w", ErrBroken, err)
	case result.Code != 0:
		return result.Output, fmt.Errorf("exit status %d", result.Code)
	}
	return result.Output, nil
}

// call calls a method of the agent. When ctx ends, call returns the error of ctx at once; the
// method may continue, and write to reply.
func (c *Conn) call(ctx context.Context, method string, argument, reply any) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() { done <- c.client.Call(method, argument, reply) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stream is a connection made of two pipes.
type stream struct {
	io.ReadCloser
	io.WriteCloser
}

func (s stream) Close() error { return errors.Join(s.WriteCloser.Close(), s.ReadCloser.Close()) }

// watchedReader calls ended when nothing more can be read.
type watchedReader struct {
	io.ReadCloser
	ended func()
}

func (r watchedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		r.ended()
	}
	return n, err
}
