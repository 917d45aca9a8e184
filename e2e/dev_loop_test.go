//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/plantedbugs"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/command"
)

const (
	// loopUpWithin bounds each round of `make dev`. The first round takes longest, because it links
	// both programs.
	loopUpWithin = 3 * time.Minute
	// loopEndsWithin bounds the time from Ctrl-C until all processes of `make dev` have exited.
	loopEndsWithin = 30 * time.Second
	// loopIsIdle is what Skaffold prints when it waits for the next change. The text only tells the
	// scenario when to continue. It proves nothing.
	loopIsIdle = "Watching for changes..."
)

// devLoop is a running `make dev` in a copy of the sources.
type devLoop struct {
	*rig.Background
	sources string // the root of the copy
	log     string // path of the file with the output
	rounds  int    // number of awaited rounds
	group   int    // ID of the process group
}

// built returns the paths of the programs in bin/ that `make dev` runs. `make e2e-all` builds them.
func built() []string { return []string{"bin/skaffold", "bin/kubectl", "bin/testbed"} }

// startLoop starts `make dev` in a copy of the sources, with the programs in bin/, and stops it
// when the scenario ends. If the scenario has failed, the testbed's extension is also reinstalled.
func startLoop(ctx context.Context, p *rig.Run) *devLoop {
	p.Helper()
	for _, program := range built() {
		if _, err := os.Stat(program); err != nil {
			p.Fatalf("%v; run: make %s", err, strings.Join(built(), " "))
		}
	}
	folder, err := os.MkdirTemp(p.Session.Scratch, "inner-loop-")
	p.Check(err)
	p.Afterwards(ctx, func(context.Context) error { return os.RemoveAll(folder) })
	loop := &devLoop{sources: filepath.Join(folder, "sources"), log: filepath.Join(folder, "make-dev.log")}
	p.Check(copySources(loop.sources))

	p.Afterwards(ctx, func(ctx context.Context) error {
		if !p.Scenario.Failed() {
			return nil
		}
		keepLog(p, loop.log)
		return cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed))
	})
	log, err := os.Create(loop.log)
	p.Check(err)
	environment, err := loopEnvironment(ctx, filepath.Join(folder, "cache"))
	p.Check(err)
	ctx, cancel := context.WithCancel(ctx)
	cmd := loop.command(ctx)
	cmd.Env = environment
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		cancel()
		p.Check(errors.Join(err, log.Close()))
	}
	loop.group = cmd.Process.Pid
	loop.Background = &rig.Background{Cancel: cancel, Ended: make(chan struct{})}
	go func() {
		defer close(loop.Ended)
		loop.Err = errors.Join(fmt.Errorf("make dev ended: %w", cmd.Wait()), log.Close())
	}()
	p.Scenario.Cleanup(func() { _ = loop.interrupt(ctx) })
	return loop
}

// command returns `make dev` as leader of a process group, as a shell would start it. Canceling ctx
// sends Ctrl-C. make treats the programs in bin/ as up to date.
func (l *devLoop) command(ctx context.Context) *exec.Cmd {
	arguments := []string{"--directory", l.sources, "--no-print-directory", "dev"}
	for _, program := range built() {
		arguments = append(arguments, "--old-file", program)
	}
	cmd := exec.CommandContext(ctx, "make", arguments...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = loopEndsWithin
	return cmd
}

// loopEnvironment returns the environment of this process without make's variables. `make dev`
// stores its executables in the cache folder, and shares Go's build cache with this process.
func loopEnvironment(ctx context.Context, cache string) ([]string, error) {
	compiled, err := command.Output(ctx, "go", "env", "GOCACHE")
	if err != nil {
		return nil, fmt.Errorf("find Go's build cache: %w", err)
	}
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "MAKE") || name == "MFLAGS"
	})
	cache, err = filepath.Abs(cache)
	return append(environment, "GOCACHE="+strings.TrimSpace(compiled), "XDG_CACHE_HOME="+cache), err
}

// interrupt sends Ctrl-C and waits until all processes of the group have exited, even if ctx is
// canceled. Processes that do not exit in time are killed, and an error is returned.
func (l *devLoop) interrupt(ctx context.Context) error {
	l.End()
	left := rig.Await(context.WithoutCancel(ctx), "nothing of make dev runs", loopEndsWithin, func(context.Context) (bool, string, error) {
		return errors.Is(syscall.Kill(-l.group, 0), syscall.ESRCH), fmt.Sprintf("the group %d has processes", l.group), nil
	})
	if left != nil {
		_ = syscall.Kill(-l.group, syscall.SIGKILL)
	}
	return left
}

// awaitRound waits until another round of building and installing has ended.
func awaitRound(ctx context.Context, p *rig.Run, loop *devLoop) {
	p.Helper()
	loop.rounds++
	p.Await(ctx, fmt.Sprintf("round %d of make dev has ended", loop.rounds), loopUpWithin, func(context.Context) (bool, string, error) {
		text, err := os.ReadFile(loop.log)
		if err != nil {
			return false, "", err
		}
		return bytes.Count(text, []byte(loopIsIdle)) >= loop.rounds, lastLine(text), loop.Failed()
	})
}

// save writes the change to the copy of the sources and returns the time of the write.
func save(p *rig.Run, loop *devLoop, change plantedbugs.Change) time.Time {
	p.Helper()
	changed, err := change.Apply(loop.sources)
	p.Check(err)
	p.Check(os.WriteFile(filepath.Join(loop.sources, change.File), []byte(changed), 0o600))
	return time.Now()
}

// copySources copies the sources of the repository. bin and the testbed's folder become symbolic
// links, so that the copy uses the programs and the testbed of the original.
func copySources(to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case slices.Contains([]string{".git", "_artifacts"}, name):
		case name == "bin", name == kind.DefaultDirectory:
			original, err := filepath.Abs(name)
			if err != nil {
				return err
			}
			if err := os.Symlink(original, filepath.Join(to, name)); err != nil {
				return err
			}
		case entry.IsDir():
			if err := os.CopyFS(filepath.Join(to, name), os.DirFS(name)); err != nil {
				return fmt.Errorf("copy %s: %w", name, err)
			}
		default:
			if err := copyFile(name, filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) { // for example a temporary file of an editor
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// keepLog copies the output of make dev to the artifacts.
func keepLog(p *rig.Run, log string) {
	p.Helper()
	text, err := os.ReadFile(log)
	if err == nil {
		err = os.WriteFile(filepath.Join(rig.Artifacts, p.Result.Name, "make-dev.log"), text, 0o600)
	}
	if err != nil {
		p.Scenario.Logf("the output of make dev could not be stored: %v", err)
	}
}
