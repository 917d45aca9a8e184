package cachetest

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestCheckDisk: the warning names the limit, which is that of the cache. The testbed must not
// import the cache's package.
func TestCheckDisk(t *testing.T) {
	const gib = 1 << 30
	source, err := os.ReadFile("../registry/cache/evict.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\treserve = (\d+)$`).FindSubmatch(source)
	if found == nil || string(found[1]) != strconv.Itoa(reserve) {
		t.Errorf("caches keep %s %% free, but the preflight expects %d %%", found, reserve)
	}
	if warning := Extension().CheckDisk(252*gib, 252*gib/100*reserve); warning != "" {
		t.Errorf("enough space: %s", warning)
	}
	const want = "12.5 GiB are free; with less than 12.6 GiB, 5 % of the file system, caches "
	if warning := Extension().CheckDisk(252*gib, 12.5*gib); !strings.HasPrefix(warning, want) {
		t.Errorf("got %q, want it to begin with %q", warning, want)
	}
}
