package proof

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

// TestScenariosAreInterruptedOnce: Ctrl-C at a terminal signals the group of the testbed's own process, and the scenarios must hear of
// it once: a second signal would end them in the middle of their clean-up.
func TestScenariosAreInterruptedOnce(t *testing.T) {
	// A shell cannot trap what it was started to ignore, which is SIGINT where the tests run in the background of a script. What this
	// process waits for, its children do not ignore.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt)
	defer signal.Stop(heard)
	program := filepath.Join(t.TempDir(), "scenarios")
	script := "#!/bin/sh\ntrap 'echo interrupted; kill $!' INT\nsleep 60 &\necho \"$$\"\nwait\necho cleaned up\nexit 1\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	cmd := scenariosCommand(ctx, program, writer)
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
		t.Errorf("they said %q, error %v", rest, err)
	}
	<-ended
}
