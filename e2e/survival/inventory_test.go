//go:build e2e

package survival

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// writtenFolder is where the script "machine" shows all files that were written since it started.
const writtenFolder = "/mnt/written"

// inventory is a set of the things on the machine that a testbed could have created: containers,
// files, processes and so on. A key is "<kind> <name>".
type inventory map[string]bool

// keptByDown matches entries that `testbed down` keeps: images and locks.
var keptByDown = []*regexp.Regexp{
	regexp.MustCompile(`^image registry-cache[-.]testbed/`),
	regexp.MustCompile(`^file /run/registry-cache-testbed/[a-z-]+\.lock$`),
}

// takeInventory returns the current inventory. It starts the engine if necessary, and stops the
// engine at the end unless something else uses it.
func takeInventory(t *testing.T) inventory {
	t.Helper()
	all := inventory{}
	if _, err := engine.Ensure(t.Context()); err != nil {
		t.Fatalf("list what is left in the engine: %v", err)
	}
	all.addOutput(t, "container", "docker", "ps", "--all", "--format", "{{.Names}}")
	all.addOutput(t, "volume", "docker", "volume", "ls", "--quiet")
	all.addOutput(t, "network", "docker", "network", "ls", "--format", "{{.Name}}")
	all.addOutput(t, "image", "docker", "images", "--format", "{{.Repository}}:{{.Tag}}")
	if err := engine.Release(t.Context()); err != nil {
		t.Fatalf("stop the engine: %v", err)
	}
	all.addProcesses(t)
	all.addMounts(t)
	all.addLinks(t)
	all.addOutput(t, "rule", "iptables-save")
	all.addOutput(t, "rule", "ip6tables-save")
	for _, folder := range []string{writtenFolder, "/run", ".testbed"} {
		all.addFiles(t, folder)
	}
	return all
}

// leftSince returns the entries that the earlier inventory lacks and `testbed down` does not keep.
func (i inventory) leftSince(before inventory) []string {
	var left []string
	for thing := range i {
		known := func(r *regexp.Regexp) bool { return r.MatchString(thing) }
		if !before[thing] && !slices.ContainsFunc(keptByDown, known) {
			left = append(left, thing)
		}
	}
	slices.Sort(left)
	return left
}

// counters matches the comments and the packet counters of iptables-save.
var counters = regexp.MustCompile(`^#.*| \[\d+:\d+\]$`)

func (i inventory) addOutput(t *testing.T, kind string, argv ...string) {
	t.Helper()
	for line := range strings.Lines(output(t, argv...)) {
		if line = counters.ReplaceAllString(strings.TrimSpace(line), ""); line != "" {
			i[kind+" "+line] = true
		}
	}
}

func output(t *testing.T, argv ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, text)
	}
	return string(text)
}

// addProcesses adds all processes except this one and PID 1.
func (i inventory) addProcesses(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		command, err := os.ReadFile(file) // empty for a kernel thread or a zombie
		if pid := filepath.Base(filepath.Dir(file)); err == nil && len(command) > 0 && pid != "1" && pid != fmt.Sprint(os.Getpid()) {
			i["process "+strings.TrimRight(strings.ReplaceAll(string(command), "\x00", " "), " ")] = true
		}
	}
}

func (i inventory) addMounts(t *testing.T) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			i["mount "+fields[4]] = true
		}
	}
}

func (i inventory) addLinks(t *testing.T) {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		i["link "+link.Name] = true
	}
}

// addFiles adds the files below the folder, except the whiteout devices of an overlay.
func (i inventory) addFiles(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // removed in the meantime
		}
		if err == nil && !entry.IsDir() && entry.Type()&fs.ModeCharDevice == 0 {
			i["file "+strings.TrimPrefix(path, writtenFolder)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cgroups returns the cgroups of a container. In version 1 there is one for each controller.
func cgroups(id string) ([]string, error) {
	version1, err := filepath.Glob("/sys/fs/cgroup/*/docker/" + id)
	if err != nil {
		return nil, err
	}
	version2, err := filepath.Glob("/sys/fs/cgroup/docker/" + id)
	return append(version1, version2...), err
}

// containers returns the IDs of all containers.
func containers(ctx context.Context) ([]string, error) {
	text, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--quiet", "--no-trunc").Output()
	return strings.Fields(string(text)), err
}
