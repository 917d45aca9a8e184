package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestInterruptOnce checks that the scenarios get one SIGINT and have a separate process group.
// Ctrl-C signals the foreground group, and a second signal would kill the scenarios during their
// clean-up.
func TestInterruptOnce(t *testing.T) {
	// A shell cannot trap a signal that it inherited as ignored. A script may run this test in the
	// background, with SIGINT ignored. After Notify, the children inherit the default action.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	program := filepath.Join(t.TempDir(), "scenarios")
	script := "#!/bin/sh\ntrap 'echo interrupted; kill $!' INT\nsleep 60 &\necho \"$$\"\nwait\necho cleaned up\nexit 1\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	cmd := scenarios(ctx, program, writer, writer)
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(cmd.Run(), writer.Close()) }()
	output := bufio.NewReader(reader)
	line, err := output.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the scenarios, process %d, are in the group %d, error %v", pid, group, err)
	}
	cancel()
	rest, err := io.ReadAll(output)
	if err != nil || string(rest) != "interrupted\ncleaned up\n" {
		t.Errorf("output %q, error %v", rest, err)
	}
	<-ended
}
