package nodeexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stderrTimeout bounds how long standard error may stay open after the agent has ended.
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
	pipes, err := start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // an error means that the program has ended
	conn, err := connect(pipes)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		_ = pipes.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // err contains the cause
		return nil, fmt.Errorf("connect to the agent: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	go func() {
		<-conn.Ended()
		_ = pipes.Close()
		_ = cmd.Wait() // the errors of its commands say more
	}()
	return conn, nil
}

// start starts a program and returns a stream of its standard output and input.
func start(cmd *exec.Cmd) (stream, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return stream{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return stream{}, err
	}
	return stream{out, in}, cmd.Start()
}
