package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

	pidFile           = "/var/run/docker.pid"
	containerdPIDFile = "/var/run/docker/containerd/containerd.pid"

	runDir  = "/run/registry-cache-testbed"
	logDir  = "/var/log/registry-cache-testbed"
	marker  = runDir + "/engine-started"
	logFile = logDir + "/dockerd.log"

	// startTimeout includes the recovery from a killed dockerd: the new dockerd first stops all
	// containers that still run.
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
	pollInterval = 200 * time.Millisecond
)

// startedBefore reports whether startDaemon has run since the last boot and the last Release.
func startedBefore() bool {
	_, err := os.Stat(marker)
	return err == nil
}

// startDaemon returns when dockerd answers. It replaces a dockerd that does not answer. The new one
// has its own session, so that it outlives this process and its terminal.
func startDaemon(ctx context.Context) error {
	answers, err := awaitRunning(ctx)
	if err != nil || answers {
		return err
	}
	if err := stopDaemon(ctx); err != nil {
		return err
	}
	if err := errors.Join(removeStale(pidFile, "dockerd"), removeStale(containerdPIDFile, "containerd")); err != nil {
		return err
	}
	exited, err := spawn(ctx)
	if err != nil {
		return fmt.Errorf("start dockerd: %w", err)
	}
	if err := waitForAnswer(ctx, exited); err != nil {
		log, logErr := os.ReadFile(logFile)
		return errors.Join(fmt.Errorf("%w; the last lines of %s:\n%s", err, logFile, command.Tail(string(log), 12)), logErr)
	}
	return nil
}

// spawn starts dockerd, and closes the returned channel when dockerd has exited.
func spawn(ctx context.Context) (exited <-chan struct{}, err error) {
	if err := errors.Join(os.MkdirAll(runDir, 0o755), os.MkdirAll(logDir, 0o755)); err != nil {
		return nil, err
	}
	// Keep the previous log: it shows how the engine died.
	_ = os.Rename(logFile, logFile+".1")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	if err := os.WriteFile(marker, nil, 0o644); err != nil {
		return nil, err
	}

	path := searchPath()
	program, err := lookIn(path, "dockerd")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, daemonFlags...) // dockerd outlives this process
	cmd.Dir = "/"
	cmd.Env = append(command.Unmarked(os.Environ()), "PATH="+path) // other testbeds also use the engine
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the log contains the reason
		close(done)
	}()
	return done, nil
}

// searchPath returns PATH and the directories of system programs, which a user's PATH often lacks.
func searchPath() string { return os.Getenv("PATH") + ":" + systemPath }

func lookIn(path, program string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s not found in %s", program, path)
}

// awaitRunning waits for a dockerd that an earlier Ensure started. That dockerd may still be
// starting, or the machine may be busy. A restart would stop the containers of all testbeds.
func awaitRunning(ctx context.Context) (answers bool, err error) {
	pid, err := runningPID(pidFile, "dockerd")
	if err != nil || pid == 0 {
		return false, err
	}
	progress.Note(ctx, "waited for dockerd, process %d", pid)
	if waitForAnswer(ctx, nil) == nil {
		return true, nil
	}
	return false, ctx.Err()
}

// waitForAnswer polls until the engine answers. The wait fails at once when dockerd has exited.
func waitForAnswer(ctx context.Context, exited <-chan struct{}) error {
	last := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-exited:
			return false, errors.New("dockerd exited")
		default:
		}
		_, last = probe(ctx)
		return last == nil, nil
	})
	if err != nil {
		// Only the last line of docker info's output contains the reason.
		return fmt.Errorf("waiting up to %s for dockerd to answer: %w: %s", startTimeout, err, command.Tail(last.Error(), 1))
	}
	return nil
}

// stopDaemon stops dockerd with SIGTERM, then SIGKILL, and returns when its process is gone.
func stopDaemon(ctx context.Context) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		pid, err := runningPID(pidFile, "dockerd")
		if err != nil || pid == 0 {
			return err
		}
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %s to dockerd, process %d: %w", signal, pid, err)
		}
		err = wait.PollUntilContextTimeout(ctx, pollInterval, stopTimeout, true, func(context.Context) (bool, error) {
			now, err := runningPID(pidFile, "dockerd")
			return now != pid, err
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("dockerd did not stop in %s, not even after SIGKILL; see %s", 2*stopTimeout, logFile)
}

const (
	// shimPath is outside the repository, since the engine outlives a checkout.
	shimPath    = "/usr/local/lib/registry-cache-testbed/runcshim"
	shimPackage = "github.com/gardener-extensions/registry-cache/kind/engine/runcshim"
	shimRuntime = "registry-cache-testbed"
	shimTimeout = 3 * time.Minute
)

var daemonFlags = []string{
	"--label=" + managedLabel, "--add-runtime=" + shimRuntime + "=" + shimPath, "--default-runtime=" + shimRuntime,
}

// buildShim builds the OCI runtime shim from this module and installs it at shimPath.
func buildShim(ctx context.Context) error {
	ctx, cancel := progress.Within(ctx, shimTimeout, "the runc shim was not built")
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(shimPath), 0o755); err != nil {
		return fmt.Errorf("install the runc shim: %w", err)
	}
	// The rename atomically replaces a shim that may be in use.
	temp := shimPath + ".new"
	cmd := kindexec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", temp, shimPackage)
	cmd.SetEnv(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")...)
	if _, err := command.Run(ctx, cmd); err != nil {
		return fmt.Errorf("build the runc shim (must run in the repository): %w", err)
	}
	return os.Rename(temp, shimPath)
}

// startService starts the packaged service. Without managedLabel, Release never stops its engine.
func startService(ctx context.Context) error {
	ctx, cancel := progress.Within(ctx, startTimeout, "systemctl did not finish")
	defer cancel()
	_, err := command.Output(ctx, "systemctl", "start", "docker.service")
	if err == nil {
		err = waitForAnswer(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("%w; see journalctl -u docker.service", err)
	}
	return nil
}
