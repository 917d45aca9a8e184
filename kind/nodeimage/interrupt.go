package nodeimage

import (
	"context"
	"os"
	"time"

	"sigs.k8s.io/kind/pkg/exec"
)

const (
	// interruptGrace is how long an interrupted command may take to end by itself before it is killed.
	interruptGrace = 5 * time.Second
	// cleanUpTime bounds how long the temporary files of commands that were killed are removed again and again.
	cleanUpTime = 20 * time.Second
)

// interruptible is exec.CommandContext for commands that clean up after themselves: when ctx ends they get the signal
// of Ctrl-C first. go then removes its work folder. mmdebstrap waits for its children, who get the signal only from a
// terminal: without one it is killed in the end, and the temporary folder, which is ours, is removed with the cache's.
func interruptible(ctx context.Context, name string, args ...string) exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	if local, ok := cmd.(*exec.LocalCmd); ok {
		local.Cancel = func() error { return local.Process.Signal(os.Interrupt) }
		local.WaitDelay = interruptGrace
	}
	return cmd
}
