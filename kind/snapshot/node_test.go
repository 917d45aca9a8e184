package snapshot

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// machine is a node with a volume, and a pod with one process.
type machine struct {
	folder string
	env    []string
	pod    *exec.Cmd
}

// newMachine creates the volume, the process, and a fake crictl that knows only that pod and fails
// on unexpected arguments.
func newMachine(t *testing.T, running bool) *machine {
	t.Helper()
	root := t.TempDir()
	m := &machine{folder: filepath.Join(root, "volumes", "pvc-1")}
	bin := filepath.Join(root, "bin")
	for _, folder := range []string{bin, filepath.Join(m.folder, "docker", "registry")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.put(t, "docker/registry/blob", "before")
	pid := ""
	if running {
		m.pod = exec.Command("sleep", "60")
		if err := m.pod.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = m.pod.Wait(); close(ended) }()
		t.Cleanup(func() { _ = m.pod.Process.Kill(); <-ended })
		pid = strconv.Itoa(m.pod.Process.Pid)
	}
	crictl := `#!/bin/sh
case "$*" in
"ps --quiet --label io.kubernetes.pod.namespace=kube-system --label io.kubernetes.pod.name=pod-0") [ -z "` + pid + `" ] || echo c1 ;;
"inspect --output go-template --template {{.info.pid}} c1") echo ` + pid + ` ;;
*) echo "crictl $*" >&2; exit 9 ;;
esac
`
	// cp is a fake that creates the hard links. SIGSTOP takes effect when the kernel next schedules
	// the process, so the fake first waits up to 60 seconds until the process is stopped.
	cp := `#!/bin/sh
deadline=$(($(date +%s) + 60))
until [ -z "` + pid + `" ] || grep -q '^State:[[:space:]]*T' /proc/` + pid + `/status; do
  [ "$(date +%s)" -lt "$deadline" ] || { echo "the process is not stopped" >&2; exit 1; }
done
exec /bin/cp "$@"
`
	for name, script := range map[string]string{"crictl": crictl, "cp": cp} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return m
}

func (m *machine) put(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(m.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) run(t *testing.T, argv []string, in io.Reader) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	var out, messages bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = m.env, in, &out, &messages
	err := cmd.Run()
	if err != nil {
		t.Logf("%s", &messages)
	}
	return out.String(), err
}

// state returns the state of the pod's process: S is sleeping, T is paused, "" is ended. state
// waits for one of the wanted states, since a process changes its state only when it is scheduled.
func (m *machine) state(t *testing.T, wanted ...string) string {
	t.Helper()
	state := ""
	_ = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		state = m.stateNow()
		return slices.Contains(wanted, state), nil
	})
	return state
}

func (m *machine) stateNow() string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(m.pod.Process.Pid), "stat"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest[:1]
}

// checkClean fails if files of the script remain next to the volume.
func (m *machine) checkClean(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(m.folder))
	if err != nil || len(entries) != 1 {
		t.Errorf("next to the volume: %v, %v", entries, err)
	}
}

func TestSaveAndRestore(t *testing.T) {
	for _, running := range []bool{true, false} {
		m := newMachine(t, running)
		const upload = "docker/registry/repositories/shop/_uploads/1/data"
		m.put(t, upload, "half")
		archive, err := m.run(t, argv("save", "pod-0", m.folder), nil)
		if err != nil {
			t.Fatal(err)
		}
		m.checkClean(t)
		if _, err := os.Stat(filepath.Join(m.folder, upload)); err != nil {
			t.Errorf("upload in progress: %v", err)
		}
		if running {
			if state := m.state(t, "S"); state != "S" {
				t.Errorf("after saving the process is in state %q", state)
			}
		}

		m.put(t, "docker/registry/blob", "after")
		m.put(t, "docker/later", "later")
		if err := os.Chmod(m.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := m.run(t, argv("restore", "pod-0", m.folder), strings.NewReader(archive)); err != nil {
			t.Fatal(err)
		}
		m.checkClean(t)
		if content, err := os.ReadFile(filepath.Join(m.folder, "docker/registry/blob")); string(content) != "before" {
			t.Errorf("restored %q, %v", content, err)
		}
		for name, what := range map[string]string{"docker/later": "a file newer than the snapshot", upload: "a partial upload"} {
			if _, err := os.Stat(filepath.Join(m.folder, name)); err == nil {
				t.Errorf("%s exists", what)
			}
		}
		if info, err := os.Stat(m.folder); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("mode of the folder %v, %v", info.Mode(), err)
		}
		if running {
			if state := m.state(t, "", "Z"); state != "" && state != "Z" {
				t.Errorf("the process is in state %q and has the previous files open", state)
			}
		}
	}
}

// TestDamagedArchive checks that a damaged archive changes neither the volume nor the process.
func TestDamagedArchive(t *testing.T) {
	m := newMachine(t, true)
	archive, err := m.run(t, argv("save", "pod-0", m.folder), nil)
	if err != nil {
		t.Fatal(err)
	}
	m.put(t, "docker/registry/blob", "after")
	for name, broken := range map[string]string{"truncated between members": archive[:1024], "truncated in a member": archive[:1024+700], "no archive": "hello", "nothing": ""} {
		if _, err := m.run(t, argv("restore", "pod-0", m.folder), strings.NewReader(broken)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if content, err := os.ReadFile(filepath.Join(m.folder, "docker/registry/blob")); string(content) != "after" {
			t.Errorf("%s: the volume holds %q, %v", name, content, err)
		}
		if state := m.state(t, "S"); state != "S" {
			t.Errorf("%s: the process is in state %q", name, state)
		}
		m.checkClean(t)
	}
}

// TestSaveFails checks that no process stays paused if saving fails.
func TestSaveFails(t *testing.T) {
	m := newMachine(t, true)
	if _, err := m.run(t, argv("save", "pod-0", filepath.Join(m.folder, "missing")), nil); err == nil {
		t.Error("missing folder: no error")
	}
	if state := m.state(t, "S"); state != "S" {
		t.Errorf("the process is in state %q", state)
	}
	if _, err := m.run(t, argv("save", "pod-1", m.folder), nil); err == nil {
		t.Error("crictl fails: no error")
	}
}

func TestSize(t *testing.T) {
	m := newMachine(t, false)
	m.put(t, "large", strings.Repeat("x", 1<<20))
	out, err := m.run(t, argv("size", m.folder), nil)
	if size, parseErr := strconv.Atoi(strings.TrimSpace(out)); err != nil || parseErr != nil || size < 1<<20 || size > 1<<20+1<<16 {
		t.Errorf("size %q, %v, %v", out, err, parseErr)
	}
}
