package nodeexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// outputTimeout is how long the output of a command may stay open after the command has ended. A
// process that the command leaves behind may keep the output open forever.
const outputTimeout = 10 * time.Second

// Exit codes of commands that did not run, that a signal killed, or whose output is not complete.
// `docker exec` and shells use the same codes.
const (
	exitIncomplete    = 125
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the number of the signal
)

// run runs a command with the streams of the channel, and returns its exit code. When ctx ends, run
// kills the process group of the command.
func run(ctx context.Context, argv []string, channel ssh.Channel) uint32 {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = channel, channel.Stderr(), outputTimeout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		go func() {
			_, _ = io.Copy(in, channel) // the command need not read all of its input
			_ = in.Close()
		}()
		err = cmd.Wait()
	}
	return exitCode(err, channel.Stderr())
}

// exitCode returns the exit code for a result of exec.Cmd. If the command did not run or its output
// is not complete, exitCode writes the reason to stderr.
func exitCode(err error, stderr io.Writer) uint32 {
	if err == nil {
		return 0
	}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return exitSignal + uint32(status.Signal())
		}
		return uint32(failed.ExitCode())
	}
	fmt.Fprintln(stderr, err)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return exitNotFound
	case errors.Is(err, exec.ErrWaitDelay):
		return exitIncomplete
	}
	return exitNotExecutable
}
