package nodeexec

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"
)

var (
	// ErrNotRun reports that a command was not run, because there is no connection or because the
	// command cannot be sent. The command's input was not read.
	ErrNotRun = errors.New("the command was not run by the agent")
	// ErrBroken reports that the connection broke while a command ran. The command may have had all,
	// some or none of its effects, and its output may be incomplete.
	ErrBroken = errors.New("the connection to the agent broke while the command ran")
)

// ExitError reports that a command ended with an exit code other than 0.
type ExitError struct{ Code int }

// Error returns the same text as an *exec.ExitError of package os/exec.
func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// ExitCode returns the exit code. It is 128 plus the number of the signal that killed the command,
// 127 if the program does not exist, and 126 if it cannot be executed.
func (e *ExitError) ExitCode() int { return e.Code }

// Command is a command to run.
type Command struct {
	Argv   []string  // not interpreted by a shell
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // nil: discarded
	Stderr io.Writer // nil: discarded
}

// Conn is a connection to an agent. Its methods may be used concurrently.
type Conn struct {
	client *ssh.Client
	ended  chan struct{}
}

// connect starts SSH on a connection. If SSH does not start, connect closes the connection.
func connect(pipes stream) (*Conn, error) {
	config := &ssh.ClientConfig{
		// The agent is a child of this process: nobody else is at the other end of its pipes.
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	}
	connection, channels, requests, err := ssh.NewClientConn(pipes, "agent", config)
	if err != nil {
		return nil, err
	}
	c := &Conn{client: ssh.NewClient(connection, channels, requests), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		_ = c.client.Wait() // a normal end can also return an error
	}()
	return c, nil
}

// Close ends the connection, the agent and its commands. It does not wait for their end.
func (c *Conn) Close() { _ = c.client.Close() } // an error means that the connection has ended

// Ended returns a channel that is closed when the connection has ended.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Run runs a command and returns when it has ended. It never writes to Stdout and Stderr at the
// same time, so that both may be the same writer. It may read more of Stdin than the command reads.
//
// The error is an *ExitError if the command failed. It wraps ErrNotRun or ErrBroken if the
// connection failed. When ctx ends, Run returns the error of ctx at once, and the agent kills the
// command's process group.
func (c *Conn) Run(ctx context.Context, command Command) error {
	encoded, err := encode(command.Argv)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	var writers gate
	if command.Stdout != nil {
		command.Stdout = gatedWriter{&writers, command.Stdout}
	}
	if command.Stderr != nil {
		command.Stderr = gatedWriter{&writers, command.Stderr}
	}
	result := make(chan error, 1)
	go func() { result <- c.run(ctx, encoded, command) }()
	select {
	case err = <-result:
	case <-ctx.Done():
		writers.close()
		return ctx.Err()
	}
	if ctx.Err() != nil && (errors.Is(err, ErrBroken) || errors.Is(err, ErrNotRun)) {
		return ctx.Err() // the end of ctx has closed the session
	}
	return err
}

// run runs a command in one session. It may return long after ctx has ended, since SSH may wait for
// an answer of the agent.
func (c *Conn) run(ctx context.Context, encoded string, command Command) error {
	session, err := c.client.NewSession()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	end := func() { _ = session.Close() } // an error means that the session is closed
	defer end()
	defer context.AfterFunc(ctx, end)()
	session.Stdin, session.Stdout, session.Stderr = command.Stdin, command.Stdout, command.Stderr
	if err := session.Start(encoded); err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return commandError(session.Wait())
}

// commandError translates an error of ssh.Session.Wait.
func commandError(err error) error {
	var failed *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case errors.As(err, &failed):
		return &ExitError{Code: failed.ExitStatus()}
	case errors.As(err, &missing):
		return fmt.Errorf("%w: %w", ErrBroken, err)
	case errors.Is(err, io.EOF):
		return nil // the command succeeded without reading all of its input
	}
	return err // the error of the caller's reader or writer
}
