package export

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"text/template"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
)

// contains checks that the text contains the parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// unpack returns the files of an archive.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(plain); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

// text returns a part that stores one file.
func text(name, content string) part {
	return file(name, func(context.Context) (string, error) { return content, nil })
}

// replaceLogs replaces kind's collection of logs during a test.
func replaceLogs(t *testing.T, collect func(cluster, folder string) error) {
	t.Helper()
	previous := collectLogs
	collectLogs = collect
	t.Cleanup(func() { collectLogs = previous })
}

// write writes a file into a folder that may be missing.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Error(err)
	}
}

// TestCollect: the archive contains in one folder what could be collected, the index names the
// rest, and nothing is left in the folder for temporary files.
func TestCollect(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	replaceLogs(t, func(cluster, folder string) error {
		for _, name := range []string{"worker/kubelet.log", "worker/pods/a/0.log", "worker/containers/a.log", "worker/journal/x.journal"} {
			write(t, filepath.Join(folder, name), "of "+cluster)
		}
		return errors.New("worker2:\nno answer")
	})
	archive := filepath.Join(t.TempDir(), "scenario", "export.tar.gz")
	for _, status := range []string{"first", "SHOOT registry-cache-shoot"} { // the second archive replaces the first
		written, err := collect(t.Context(), []part{
			text(statusFile, status), text("versions.txt", ""), logs("shoot", "registry-cache-shoot"),
			file("faults.json", func(context.Context) (string, error) { return "", errors.New("no nft") }),
		}, archive, "it failed")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(written.Missing)
		if want := []string{"faults.json: no nft", "shoot: worker2: no answer"}; !slices.Equal(written.Missing, want) || written.Err() == nil {
			t.Errorf("missing %q, want %q", written.Missing, want)
		}
		got := unpack(t, archive)
		want := map[string]string{
			"export/index.md": written.Index, "export/status.txt": status, "export/versions.txt": "",
			"export/shoot/worker/kubelet.log": "of registry-cache-shoot", "export/shoot/worker/pods/a/0.log": "of registry-cache-shoot",
		}
		if !maps.Equal(got, want) {
			t.Errorf("files %q, want %q", got, want)
		}
		contains(t, written.Index, "## Why\n\n```text\nit failed\n", "## Not collected\n", "faults.json: no nft", "## Status\n\n```text\n"+status+"\n")
	}
	if entries, err := os.ReadDir(temporary); err != nil || len(entries) > 0 {
		t.Errorf("%d temporary files are left, error %v", len(entries), err)
	}
}

// TestCollectInterrupted: after Ctrl-C nothing is written. After a timeout, the archive contains
// what was collected.
func TestCollectInterrupted(t *testing.T) {
	ended, stop := context.WithCancel(t.Context())
	stop()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	path := filepath.Join(t.TempDir(), "a.tar.gz")
	if _, err := collect(ended, []part{text("a", "b")}, path, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("an archive was written: %v", err)
	}
	if _, err := collect(late, []part{text("a", "b")}, path, ""); err != nil || unpack(t, path)["a/a"] != "b" {
		t.Errorf("error %v", err)
	}
}

// TestStuckLogs: if kind's collection of logs hangs, what was written before the timeout is packed.
func TestStuckLogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tar.gz")
	release := make(chan struct{})
	replaceLogs(t, func(_, folder string) error {
		write(t, filepath.Join(folder, "docker-info.txt"), "early")
		<-release
		return nil
	})
	synctest.Test(t, func(t *testing.T) { // fake time
		release = make(chan struct{})
		archive, err := collect(t.Context(), []part{logs("seed", "registry-cache-seed")}, path, "")
		if err != nil || len(archive.Missing) != 1 || !strings.Contains(archive.Missing[0], "not done after 1m0s") {
			t.Errorf("%+v, error %v", archive, err)
		}
		close(release)
	})
	if got := unpack(t, path)["a/seed/docker-info.txt"]; got != "early" {
		t.Errorf("got %q", got)
	}
}

// executor is a node whose programs print their arguments. A program that contains failOn fails.
type executor struct{ failOn string }

func (e executor) Exec(_ context.Context, argv ...string) (string, error) {
	line := strings.Join(argv, " ")
	if strings.Contains(line, e.failOn) {
		return "half", errors.New("exit status 1")
	}
	return line, nil
}

// reporter is a fake kind.Reporter of an extension with two units.
type reporter struct{ kind.Reporter }

func (reporter) Units() []string { return []string{"one.service", "two.service"} }
func (reporter) Files() map[string][]string {
	return map[string][]string{"own.txt": {"echo", "of the extension"}}
}

// TestRun: a failed program is reported, its output is kept, and the other programs run.
func TestRun(t *testing.T) {
	into := &folder{dir: t.TempDir()}
	run(executor{"containerd config"}, "shoot/worker/state", nodeState(reporter{}))(t.Context(), into)
	if want := []string{"shoot/worker/state/containerd.toml: exit status 1"}; !slices.Equal(into.missing(), want) {
		t.Errorf("missing %q, want %q", into.missing(), want)
	}
	if half := into.text("shoot/worker/state/containerd.toml"); half != "half" {
		t.Errorf("output %q", half)
	}
	contains(t, into.text("shoot/worker/state/certs.d.txt"), "/etc/containerd/certs.d")
	contains(t, into.text("shoot/worker/state/units.txt"), "systemctl cat --no-pager one.service two.service;")
	contains(t, into.text("shoot/worker/state/own.txt"), "of the extension")
	for _, p := range nodeState(nil) {
		contains(t, contents, p.file)
	}
}

// TestSecrets: keys are printed, but values never are. Only the template reads Secrets.
func TestSecrets(t *testing.T) {
	var list map[string]any
	if err := json.Unmarshal([]byte(`{"items": [
		{"metadata": {"namespace": "kube-system", "name": "a", "labels": {"x": "y"}, "creationTimestamp": "2026-01-02T03:04:05Z",
		  "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "aHVudGVyMg=="}},
		 "type": "Opaque", "immutable": true, "data": {"password": "aHVudGVyMg==", "user": "bWU="}},
		{"metadata": {"namespace": "default", "name": "b", "creationTimestamp": null}, "type": "kubernetes.io/tls"}]}`), &list); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := template.Must(template.New("").Parse(secretsTemplate)).Execute(&out, list); err != nil {
		t.Fatal(err)
	}
	want := "kube-system/a Opaque 2026-01-02T03:04:05Z immutable map[x:y] password=12 user=4\ndefault/b kubernetes.io/tls <no value>\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
	without, with := objects("seed", false), objects("seed", true)
	with = with[len(without):]
	if len(with) != 2 || with[0].file != "garden.yaml" || with[1].file != "apiservices.yaml" || strings.Contains(strings.Join(with[1].argv, " "), "core.gardener.cloud") {
		t.Errorf("the objects of a garden are %v", with)
	}
	for _, cluster := range []string{"seed", "shoot"} {
		for _, p := range objects(cluster, true) {
			if line := strings.Join(p.argv, " "); strings.Contains(line, "secret") != strings.HasSuffix(line, secretsTemplate) {
				t.Errorf("%s: %s", p.file, line)
			}
		}
	}
}

// TestHostileTexts: the output of programs neither ends a code block nor breaks a list.
func TestHostileTexts(t *testing.T) {
	page := index(time.Time{}, "```\n# not a heading", "", nil)
	if strings.Count(page, "```") != 2 || strings.Contains(page, "## Status") || strings.Contains(page, "## Not collected") {
		t.Errorf("index:\n%s", page)
	}
	into := &folder{dir: t.TempDir()}
	into.fail("a", errors.New("two\nlines "+strings.Repeat("ü", 1000)))
	if missing := into.missing(); len(missing[0]) > 1010 || !strings.HasPrefix(missing[0], "a: two lines ü") || !strings.HasSuffix(missing[0], "ü…") {
		t.Errorf("missing %q", missing)
	}
}
