package bringup

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func good() Machine {
	return Machine{
		needed: []space{{"/var/lib/docker", 20 * gib}, {"/home/.cache", 5 * gib}},
		disk:   []space{{"/var/lib", 20 * gib}, {"/home", 5 * gib}}, memory: 6 * gib, instances: 512, watches: 524288,
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name   string
		change func(m *Machine)
		failed string // parts of the only failure, separated by "|"; empty if none
	}{
		{"just enough", func(*Machine) {}, ""},
		{"disk", func(m *Machine) { m.disk[0].bytes-- }, "  20.0 GiB free at /var/lib, 20.0 GiB needed: free|data-root in"},
		{"the other disk", func(m *Machine) { m.disk[1].bytes = gib }, "  1.0 GiB free at /home, 5.0 GiB needed: |XDG_CACHE_HOME"},
		{"both disks", func(m *Machine) { m.disk[0].bytes, m.disk[1].bytes = 0, gib }, "0.0 GiB free at /var/lib, 20.0 GiB needed; 1.0 GiB free at /home, 5.0 GiB needed: "},
		{"memory", func(m *Machine) { m.memory = 4 * gib }, "  4.0 GiB of memory, 6.0 GiB needed: use a larger machine"},
		{"inotify instances", func(m *Machine) { m.instances = 128 },
			"128 inotify instances and 524288 watches, 512 and 524288 needed: |sysctl -w fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288"},
		{"inotify watches", func(m *Machine) { m.watches = 8192 }, "and 8192 watches,"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			machine := good()
			tc.change(&machine)
			failed := machine.Failures()
			if tc.failed == "" {
				if len(failed) > 0 {
					t.Errorf("failed: %+v", failed)
				}
				return
			}
			message := (&Failures{failed}).Error()
			for part := range strings.SplitSeq(tc.failed, "|") {
				if len(failed) != 1 || !strings.Contains(message, part) {
					t.Errorf("message is\n%s\nwant one failure with %q", message, part)
				}
			}
		})
	}
	t.Run("all of them are named at once", func(t *testing.T) {
		if failed := (Machine{needed: good().needed, disk: make([]space, 2)}).Failures(); len(failed) != 3 {
			t.Errorf("%d failures, want 3: %+v", len(failed), failed)
		}
	})
}

func TestMemoryLimit(t *testing.T) {
	const none = math.MaxUint64
	tests := []struct {
		name, file, content string
		want                uint64
	}{
		{"v2", "memory.max", "4294967296\n", 4 * gib},
		{"v2 without a limit", "memory.max", "max\n", none},
		{"v1", "memory/memory.limit_in_bytes", "4294967296\n", 4 * gib},
		{"the root of v2 has no limit", "cgroup.controllers", "memory\n", none},
		{"unreadable", "memory.max/is-a-directory", "", none},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, tc.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := memoryLimit(dir); got != tc.want {
				t.Errorf("limit is %d, want %d", got, tc.want)
			}
		})
	}
}

func TestDiskFreeOfADirectoryThatIsNotThereYet(t *testing.T) {
	dir := t.TempDir()
	found, _, err := freeSpace(filepath.Join(dir, "a", "b"))
	if err != nil || found.directory != dir || found.bytes == 0 {
		t.Errorf("got %+v, %v; want free space of %s", found, err, dir)
	}
}

func TestReadMachine(t *testing.T) {
	dir := t.TempDir()
	machine, err := readMachine([]space{{dir, 1}, {filepath.Join(dir, "missing"), 1 << 60}}, nil)
	if err != nil || machine.memory == 0 || machine.instances == 0 || machine.watches == 0 {
		t.Fatalf("got %+v, %v", machine, err)
	}
	failed := machine.Failures()
	if len(failed) == 0 || !strings.Contains(failed[0].Problem, dir) || strings.Contains(failed[0].Problem, ";") {
		t.Errorf("failures %+v, want one that names %s once", failed, dir)
	}
}

// TestWarning: the extension checks the disk of a local engine. A warning fails nothing.
func TestWarning(t *testing.T) {
	docker, cache := t.TempDir(), t.TempDir()
	for name, tc := range map[string]struct {
		needed []space
		check  string // the result of the check
		want   string
	}{
		"a local engine":  {[]space{{docker, 0}, {cache, 0}}, "too little", docker + ": too little"},
		"enough":          {[]space{{docker, 0}, {cache, 0}}, "", ""},
		"a remote engine": {[]space{{cache, 0}}, "too little", ""},
	} {
		m, err := readMachine(tc.needed, func(size, free uint64) string {
			if free == 0 || free > size {
				t.Errorf("%s: %d of %d bytes are free", name, free, size)
			}
			return tc.check
		})
		if err != nil || m.Warning != tc.want {
			t.Errorf("%s: warning %q, error %v, want %q", name, m.Warning, err, tc.want)
		}
	}
}

func TestFindFull(t *testing.T) {
	folder := t.TempDir()
	if full := findFull(folder, folder+"/not/there/yet"); full != nil {
		t.Errorf("a disk with room: %v", full)
	}
}

func TestFullTellsWhatHelps(t *testing.T) {
	const want = "the disk is full: 3.5 MiB are left at /var/lib/docker; free some space and run it again"
	if got := (&Full{space{"/var/lib/docker", 7 << 19}}).Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAwaitFullEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if full := awaitFull(ctx, t.TempDir()); full != nil {
		t.Errorf("a disk with room: %v", full)
	}
}
