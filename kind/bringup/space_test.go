package bringup

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/engine"
)

func TestSpaceNeeded(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(cache, "docker.sock")) // no engine
	for _, want := range []uint64{5 * gib, gib} {
		got, err := spaceNeeded(t.Context())
		if err != nil || len(got) != 2 || got[1] != (space{cache, want}) {
			t.Errorf("got %v, %v, want %d bytes in %s", got, err, want, cache)
		}
		if err := os.MkdirAll(filepath.Join(cache, "registry-cache-testbed"), 0o755); err != nil { // something was built
			t.Fatal(err)
		}
	}
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
