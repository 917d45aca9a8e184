package diagnostics

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// recreatedAt is when the bundle of testdata/recreated was collected: the files of a testbed on which the Service of the cache of
// alpha was recreated by hand, shortened.
var recreatedAt = time.Date(2026, 11, 22, 1, 42, 20, 0, time.UTC)

// TestIndex shows what a reader sees who has only the bundle.
func TestIndex(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recreated")
	if err := os.CopyFS(dir, os.DirFS("testdata/recreated")); err != nil {
		t.Fatal(err)
	}
	own := &Folder{dir: dir}
	own.Fail("metrics", os.ErrDeadlineExceeded)
	i := &index{title: "recreated", began: recreatedAt, folders: []*Folder{own}, conclusions: conclude(dir, recreatedAt, own)}
	golden.Compare(t, "recreated.index", i.render())
}

// TestIndexOfNothing: a bundle of nothing says so, and does not fail.
func TestIndexOfNothing(t *testing.T) {
	dir := t.TempDir()
	if err := Collect(t.Context(), dir); err != nil {
		t.Error(err)
	}
	contains(t, read(t, dir, IndexFile), "Nothing is known of the seed", "Whether a fault was put in on purpose is not known.")
}

// TestHostileTexts: what programs say neither breaks the list nor ends a block.
func TestHostileTexts(t *testing.T) {
	dir := t.TempDir()
	_ = Collect(t.Context(), dir, Text("reason.txt", "```\n# not a heading"), Text("faults.json", "nonsense"))
	if index := read(t, dir, IndexFile); strings.Count(index, "```")%2 != 0 || strings.Contains(index, "\n```\n# not") {
		t.Errorf("index:\n%s", index)
	}
}

func TestMetricsCompare(t *testing.T) {
	before := map[string][]byte{"a": []byte("registry_proxy_hits_total{type=\"blob\"} 3\n")}
	now := map[string][]byte{
		"a": []byte("# HELP x\nregistry_proxy_hits_total{type=\"blob\"} 5\nregistry_proxy_misses_total 0\nregistry_proxy_x_bucket{le=\"1\"} 9\ngo_threads 7\n"),
		"b": []byte("registry_proxy_hits_total 1.5e+06\nhalf"),
	}
	golden.Compare(t, "metrics.txt", compareMetrics(before, recreatedAt, now)+"\n"+compareMetrics(nil, time.Time{}, now))
}

func TestTail(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "source")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", tailBytes)+"end"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Collect(t.Context(), dir, Tail("a.log", path), Tail("b.log", path+"-absent")); err != nil {
		t.Error(err)
	}
	if content := read(t, dir, "a.log"); len(content) != tailBytes || !strings.HasSuffix(content, "xend") {
		t.Errorf("%d bytes", len(content))
	}
	if content := read(t, dir, "b.log"); content != "" {
		t.Errorf("a file that is not there has %q", content)
	}
}
