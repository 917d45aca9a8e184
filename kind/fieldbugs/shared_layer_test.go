package fieldbugs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

func TestSplit(t *testing.T) {
	image := func(digests ...string) (img pull.Pushed) {
		for _, digest := range digests {
			img.Objects = append(img.Objects, pull.Object{Digest: digest})
		}
		return img
	}
	shared, own := split(image("m2", "c2", "base", "top"), image("m1", "c1", "base"))
	if len(shared) != 1 || shared[0].Digest != "base" || len(own) != 3 || own[0].Digest != "m2" || own[2].Digest != "top" {
		t.Errorf("shared %v, own %v", shared, own)
	}
}

// TestAwaitCollected checks that awaitCollected fails if an object of the first image is missing at
// first, or if one of the second is missing at the end.
func TestAwaitCollected(t *testing.T) {
	const deleted, stays = "the rest of the first image is deleted when its TTL ends", "the second image stays, with the shared layers"
	rest, second := []pull.Object{{Digest: "sha256:5555"}}, []pull.Object{{Digest: "sha256:0000"}}
	for name, test := range map[string]struct {
		before, after, second string // what find prints
		bound                 time.Duration
		claim                 string // or empty: an error
		holds                 bool
	}{
		"it is deleted":            {"5\n", "", "0\n", time.Hour, stays, true},
		"it stays":                 {"5\n", "5\n", "0\n", time.Second / 4, deleted, false},
		"it never existed":         {"", "", "0\n", time.Hour, "", false},
		"the second image expired": {"5\n", "", "", time.Hour, stays, false},
		"there are too many files": {"5\n6\n", "", "0\n", time.Hour, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			r := rigOf(func(line string) string {
				if strings.Contains(line, "0000") {
					return test.second
				}
				looks++
				if looks == 1 {
					return test.before
				}
				return test.after
			})
			err := r.awaitCollected(t.Context(), volume{"worker", "/var/cache"}, rest, second, test.bound)
			if test.claim != "" {
				wantClaim(t, r, err, test.claim, test.holds)
			} else if err == nil || !strings.Contains(err.Error(), "want 1") {
				t.Errorf("%v, want that this proves nothing", err)
			}
		})
	}
}

// TestRequireAnswer checks that the digest of the answer must be that of the blob, so that a
// truncated answer is detected.
func TestRequireAnswer(t *testing.T) {
	blob := pull.Object{Digest: "sha256:" + strings.Repeat("5", 64)}
	for sum, holds := range map[string]bool{strings.Repeat("5", 64): true, strings.Repeat("6", 64): false, "": false} {
		r := rigOf(func(line string) string {
			if strings.HasPrefix(line, "kubectl") {
				return "10.96.0.5"
			}
			return sum + "  -\n"
		})
		err := r.requireAnswer(t.Context(), pull.Pushed{Reference: "alpha.upstream.test/testbed/a:latest"}, blob)
		wantClaim(t, r, err, "the cache's first answer for a shared layer is complete", holds)
	}
}

// TestBlobSum runs blobSum with a fake curl that records its arguments.
func TestBlobSum(t *testing.T) {
	folder := t.TempDir()
	const curl = `curl() { printf %s "$*" >"$FOLDER/asked"; printf blob; }; `
	cmd := exec.CommandContext(t.Context(), "bash", "-c", curl+blobSum, "10.96.0.5", "alpha.upstream.test/testbed/a:latest", "77")
	cmd.Env = append(os.Environ(), "FOLDER="+folder)
	out, err := cmd.CombinedOutput()
	asked, missing := os.ReadFile(filepath.Join(folder, "asked"))
	const sum = "fa2c8cc4f28176bbeed4b736df569a34c79cd3723e9ec42f9674b4d46ac6b8b8  -\n" // of "blob"
	if err != nil || missing != nil || string(out) != sum {
		t.Errorf("%q, %v, %v", out, err, missing)
	}
	if want := "http://10.96.0.5:5000/v2/testbed/a/blobs/sha256:77?ns=alpha.upstream.test"; !strings.HasSuffix(string(asked), want) {
		t.Errorf("%s, want %s", asked, want)
	}
}
