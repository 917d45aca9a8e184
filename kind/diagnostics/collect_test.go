package diagnostics

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func TestCollect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pull-through")
	stale := filepath.Join(dir, "good", "stale")
	if err := os.MkdirAll(filepath.Dir(stale), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{stale, filepath.Join(dir, "kept")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := Collect(t.Context(), dir,
		Source{"good", func(_ context.Context, into *Folder) {
			into.Write("b/two", []byte("2"))
			into.Write("a", make([]byte, 5000))
			into.Write("c", nil)
		}},
		Source{"bad", func(_ context.Context, into *Folder) { into.Fail("x", errors.New("first\nsecond line")) }},
		Source{"worse", func(context.Context, *Folder) { panic("boom") }},
		Text("versions.txt", "v1"),
	)
	if err == nil {
		t.Fatal("failures were not returned")
	}
	contains(t, err.Error(), "bad/x: first", "worse: panic: boom")
	index := read(t, dir, "index.md")
	if strings.Index(index, "### bad") > strings.Index(index, "### good") {
		t.Error("sources are not in order")
	}
	contains(t, index, "# Diagnostics: pull-through", "- bad/x: first second line\n", "- worse: panic: boom\n",
		"### good (", "- [a](good/a) (4 KiB)\n- [b/two](good/b/two) (1 B)\n- [c](good/c) (empty)\n", "### bad (", "nothing",
		"### General (", "- [versions.txt](versions.txt) (2 B)", "- [timeline.txt](timeline.txt) (empty)")
	if n := strings.Count(index, "### General"); n != 1 {
		t.Errorf("General is there %d times", n)
	}
	if read(t, dir, "good", "b", "two") != "2" || read(t, dir, "versions.txt") != "v1" {
		t.Error("wrong content")
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("a file of an earlier run is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kept")); err != nil {
		t.Errorf("a file that is not part of a bundle was removed: %v", err)
	}
}

// TestCollectReplaces checks that nothing of an earlier bundle remains, not even if its source no
// longer exists or fails this time.
func TestCollectReplaces(t *testing.T) {
	dir := t.TempDir()
	sources := []Source{Text("letter.txt", "not of a bundle"), Source{"own", func(_ context.Context, into *Folder) { into.Write("a", nil) }}}
	for _, name := range bundle.Evidence() {
		if filepath.Ext(name) != "" {
			sources = append(sources, Text(name, "old"))
			continue
		}
		sources = append(sources, Source{name + "/old", func(_ context.Context, into *Folder) { into.Write("file", []byte("old")) }})
	}
	if err := Collect(t.Context(), dir, sources...); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Collect(ended, dir, Text(bundle.ReasonFile, "new")); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: error %v", err)
	}
	if after := files(t, dir); !slices.Equal(after, before) || read(t, dir, bundle.ReasonFile) != "old" {
		t.Errorf("after Ctrl-C there are %q, want %q", after, before)
	}

	failing := Computed(bundle.FaultsFile, func(context.Context) ([]byte, error) { return nil, errors.New("no answer") })
	if err := Collect(t.Context(), dir, Text(bundle.ReasonFile, "new"), failing); err == nil || err.Error() != "faults.json: no answer" {
		t.Errorf("error %v", err)
	}
	want := []string{"index.md", "letter.txt", "own/a", "reason.txt", "timeline.txt"}
	if after := files(t, dir); !slices.Equal(after, want) || read(t, dir, bundle.ReasonFile) != "new" {
		t.Errorf("there are %q, want %q", after, want)
	}
}

// TestCollectKeepsAnIndex checks that the previous index is still there while sources run: if
// Collect is killed, the index still identifies the folder as a bundle.
func TestCollectKeepsAnIndex(t *testing.T) {
	dir := t.TempDir()
	if err := Collect(t.Context(), dir, Text("a", "b")); err != nil {
		t.Fatal(err)
	}
	look := Source{"own", func(context.Context, *Folder) {
		if content, err := os.ReadFile(filepath.Join(dir, IndexFile)); err != nil || !strings.HasPrefix(string(content), IndexTitle) {
			t.Errorf("index %q while collecting, error %v", content, err)
		}
	}}
	if err := Collect(t.Context(), dir, look); err != nil {
		t.Error(err)
	}
}

// files returns the paths of all files below a folder, sorted.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestCollectWithoutFailures(t *testing.T) {
	dir := t.TempDir()
	if err := Collect(t.Context(), dir, Text("a", "b")); err != nil {
		t.Error(err)
	}
	if strings.Contains(read(t, dir, "index.md"), "Not collected") {
		t.Error("the index names failures")
	}
}

func TestCollectIntoUnusableFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Collect(t.Context(), dir, Text("a", "b")); err == nil {
		t.Error("no error")
	}
}

// TestStuckSource checks that a source that ignores its context neither blocks collect nor writes
// after collect has returned.
func TestStuckSource(t *testing.T) {
	synctest.Test(t, stuckSource) // fake time, which advances only while the source is stuck
}

func stuckSource(t *testing.T) {
	release, wrote := make(chan struct{}), make(chan struct{})
	stuck := Source{"stuck", func(_ context.Context, into *Folder) {
		into.Write("early", []byte("x"))
		<-release
		into.Write("late", []byte("x"))
		into.Fail("late", errors.New("late"))
		close(wrote)
	}}
	folder := &Folder{dir: t.TempDir(), name: stuck.Name}
	collect(t.Context(), stuck, folder, time.Millisecond, time.Millisecond)
	close(release)
	<-wrote
	if len(folder.files) != 1 || folder.files[0].name != "early" {
		t.Errorf("files %v", folder.files)
	}
	if len(folder.failures) != 1 || !errors.Is(folder.failures[0], context.DeadlineExceeded) {
		t.Errorf("failures %v", folder.failures)
	}
}

// executor is a node whose commands print their arguments. A command that contains failOn fails.
type executor struct{ failOn string }

func (executor) Name() string { return "worker" }

func (e executor) Exec(_ context.Context, argv ...string) (string, error) {
	line := strings.Join(argv, " ")
	if e.failOn != "" && strings.Contains(line, e.failOn) {
		return "half", errors.New("exit status 1")
	}
	return line, nil
}

func TestNode(t *testing.T) {
	dir := t.TempDir()
	err := Collect(t.Context(), dir, Node(executor{failOn: "--unit=kubelet"}))
	if err == nil || err.Error() != "node/worker/journal/kubelet.log: exit status 1" {
		t.Errorf("error %v", err)
	}
	folder := filepath.Join(dir, "node", "worker")
	contains(t, read(t, folder, "journal", "containerd.log"), "--unit=containerd")
	contains(t, read(t, folder, "journal", "configure-containerd-registries.log"), "--unit=configure-containerd-registries")
	contains(t, read(t, folder, "journal", "gardener-node-agent.log"), "--unit=gardener-node-agent")
	contains(t, read(t, folder, "journal", "kubelet.log"), "half")
	contains(t, read(t, folder, "certs.d.txt"), "/etc/containerd/certs.d")
	contains(t, read(t, folder, "units.txt"), "containerd kubelet gardener-node-agent")
}

type fakeRegistry struct{ err error }

func (fakeRegistry) Host() string { return "alpha.upstream.test" }

func (fakeRegistry) Status() string { return "Up 3 minutes" }

func (f fakeRegistry) Output(_ context.Context, stdout, stderr io.Writer) error {
	_, _ = io.WriteString(stdout, "{}\n")
	_, _ = io.WriteString(stderr, "warning")
	return f.err
}

func TestUpstream(t *testing.T) {
	dir := t.TempDir()
	err := Collect(t.Context(), dir, Upstream(fakeRegistry{errors.New("gone")}))
	if err == nil || err.Error() != "upstream/alpha.upstream.test/access.jsonl: gone" {
		t.Errorf("error %v", err)
	}
	if got := read(t, dir, "upstream", "alpha.upstream.test", "access.jsonl"); got != "{}\n" {
		t.Errorf("access log %q", got)
	}
	if got := read(t, dir, "upstream", "alpha.upstream.test", "state.txt"); got != "output not readable: gone\n" {
		t.Errorf("state %q", got)
	}
	if got := read(t, dir, "upstream", "alpha.upstream.test", "messages.log"); got != "warning" {
		t.Errorf("messages %q", got)
	}
}
