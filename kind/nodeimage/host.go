package nodeimage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// interruptible replaces exec.CommandContext for commands that clean up after SIGINT: when ctx
// ends, the command gets SIGINT and, if it still runs five seconds later, SIGKILL. After SIGINT,
// `go` removes its work folder. mmdebstrap first waits for its children, which get SIGINT only from
// Ctrl-C. If SIGKILL ends mmdebstrap, cache.close removes its temporary folder.
func interruptible(ctx context.Context, name string, args ...string) exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	if local, ok := cmd.(*exec.LocalCmd); ok {
		local.Cancel = func() error { return local.Process.Signal(os.Interrupt) }
		local.WaitDelay = 5 * time.Second
	}
	return cmd
}

// feed runs the command, and calls write with a pipe to the command's standard input.
func feed(ctx context.Context, cmd exec.Cmd, write func(io.Writer) error) error {
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(writer)
		written <- errors.Join(err, writer.CloseWithError(err))
	}()
	_, err := command.Run(ctx, cmd.SetStdin(reader))
	_ = reader.Close() // unblocks write if the command ended early
	if writeErr := <-written; err == nil {
		err = writeErr
	}
	return err
}

// fetchBackoff allows three attempts to download something, with pauses of about 5 and 15 s.
var fetchBackoff = wait.Backoff{Steps: 3, Duration: 5 * time.Second, Factor: 3, Jitter: 0.1}

// retry calls fetch until it succeeds, backoff is used up or ctx ends. It returns the last error.
func retry(ctx context.Context, backoff wait.Backoff, what string, fetch func(context.Context) error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = fetch(ctx)
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s (tried up to %d times): %w", what, backoff.Steps, cmp.Or(last, err)) // last is nil if ctx ended before the first call
}

type hostTool struct {
	debian string // the package in Debian and Ubuntu
	file   string // an absolute path in the package, or a command in $PATH
}

// hostTools are the tools that a build needs in addition to Go: mmdebstrap and Debian's keys for
// file trees, and a C compiler with static libraries for runc (with seccomp) and Kubernetes' pause.
var hostTools = []hostTool{
	{"mmdebstrap", "mmdebstrap"},
	{"debian-archive-keyring", "/usr/share/keyrings/debian-archive-keyring.gpg"},
	{"gcc", "gcc"},
	{"libc6-dev", "/usr/include/stdlib.h"},
	{"pkg-config", "pkg-config"},
	{"libseccomp-dev", "/usr/include/seccomp.h"},
}

func present(file string) bool {
	_, err := os.Stat(file)
	if !filepath.IsAbs(file) {
		_, err = osexec.LookPath(file)
	}
	return err == nil
}

func missingPackages(tools []hostTool) []string {
	var packages []string
	for _, tool := range tools {
		if !present(tool.file) {
			packages = append(packages, tool.debian)
		}
	}
	return packages
}

// installPackages installs Debian packages on this machine. It needs root and apt-get.
func installPackages(ctx context.Context, packages []string) error {
	if os.Geteuid() != 0 || !present("apt-get") {
		return fmt.Errorf("building the node image needs missing Debian packages; run as root: apt-get install --no-install-recommends %s",
			strings.Join(packages, " "))
	}
	return engine.InstallPackages(ctx, packages...)
}
