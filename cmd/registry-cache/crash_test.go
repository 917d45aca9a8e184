package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// A cache that a crash has left with an empty state starts, serves what it has stored, and knows when it has to go
// (distribution#4478).
func TestServeAfterACrash(t *testing.T) {
	t.Parallel()
	upstream := newOutage(t, false)
	stored := upstream.push(t, "v1")
	cache, config := cacheOf(t, upstream, false)
	c := cache.start(t, config)
	cache.pull(t, stored)
	cache.awaitStored(t, layers+1)
	if code, _, log := c.terminate(t); code != program.ExitFine {
		t.Fatalf("exit code %d:\n%s", code, log)
	}
	state := filepath.Join(cache.storage, "scheduler-state.json")
	entries := func() (found map[string]any) {
		content, err := os.ReadFile(state)
		if err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(content, &found) // none in an empty file
		return found
	}
	before := len(entries())
	if before < layers+2 {
		t.Fatalf("the state has %d entries, want manifest, config and layers at least", before)
	}
	if err := os.Truncate(state, 0); err != nil {
		t.Fatal(err)
	}

	upstream.out.Store(true)
	c = cache.start(t, config)
	if err := pull(parse(t, cache.url, stored)); err != nil {
		t.Error(err)
	}
	if code, _, log := c.terminate(t); code != program.ExitFine {
		t.Fatalf("exit code %d:\n%s", code, log)
	}
	cache.eventually(t, "all entries are back", func(context.Context) (bool, error) { return len(entries()) == before, nil })
}
