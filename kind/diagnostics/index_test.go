package diagnostics

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// recreatedAt is when the shortened bundle in testdata/recreated was collected. Before that,
// someone had recreated the Service of alpha's cache by hand.
var recreatedAt = time.Date(2026, 11, 22, 1, 42, 20, 0, time.UTC)

// TestIndex compares an index with a golden file.
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

// TestIndexOfNothing checks that the index of an empty bundle lists what is missing.
func TestIndexOfNothing(t *testing.T) {
	dir := t.TempDir()
	if err := Collect(t.Context(), dir); err != nil {
		t.Error(err)
	}
	contains(t, read(t, dir, IndexFile), "There are no objects of the seed", "It is unknown whether a fault is injected.")
}

// TestHostileTexts checks that the output of programs neither breaks a list nor ends a code block.
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
	golden.Compare(t, "metrics.txt", compareMetrics(keptMetrics{recreatedAt, before}, now)+"\n"+compareMetrics(keptMetrics{}, now))
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
		t.Errorf("a missing file has %q", content)
	}
}
