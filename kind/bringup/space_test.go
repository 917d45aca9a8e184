package bringup

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
)

func TestHasBuilds(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	bed := &kind.Testbed{Root: "/a/checkout"}
	expect := func(when string, want bool) {
		t.Helper()
		if got, err := hasBuilds(bed, nodeimage.Options{}); err != nil || got != want {
			t.Errorf("%s: got %t, %v, want %t", when, got, err, want)
		}
	}
	expect("with an empty cache", false)
	binaries, err := kind.BinaryDirectory(bed.Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(binaries, 0o755); err != nil {
		t.Fatal(err)
	}
	expect("with binaries", true)
	if err := os.RemoveAll(binaries); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(cache, "registry-cache-testbed", "nodeimage", "part"), 0o755); err != nil {
		t.Fatal(err)
	}
	expect("with a part of the node image", true)
}

func TestDiskNeeded(t *testing.T) {
	const cache, moved = "/home/a/.cache", "/data/docker"
	local := &engine.Engine{Local: true, DataRoot: moved}
	spaces := func(images, builds uint64) []space {
		return []space{{moved, images * gib}, {cache, builds * gib}}
	}
	for _, tc := range []struct {
		name    string
		running *engine.Engine
		builds  bool
		want    []space
	}{
		{"a new machine", nil, false, []space{
			{"/var/lib/docker", 20 * gib}, {cache, 5 * gib}}},
		{"an engine, and nothing else", local, false, spaces(20, 5)},
		{"after down, the engine is stopped", nil, true, []space{
			{"/var/lib/docker", gib}, {cache, gib}}},
		{"up again", local, true, spaces(1, 1)},
		{"a remote engine", &engine.Engine{DataRoot: moved}, false, spaces(20, 5)[1:]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := diskNeeded(tc.running, cache, tc.builds); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
