package upstream

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

func TestHosts(t *testing.T) {
	for prefix, want := range map[string]string{
		"registry-cache": "alpha.upstream.test beta.upstream.test gamma.upstream.test",
		"mine":           "alpha.mine.upstream.test beta.mine.upstream.test gamma.mine.upstream.test",
	} {
		if got := strings.Join(testHosts(prefix), " "); got != want {
			t.Errorf("hosts of %q = %s, want %s", prefix, got, want)
		}
	}
}

func options(t *testing.T) Options {
	t.Helper()
	ca, err := certificate.Ensure(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Prefix: "mine", Host: "alpha.mine.upstream.test", Network: "kind", CA: ca,
		Image: image.Built{Ref: "registry-cache.testbed/upstream-registry:1", Image: empty.Image},
	}
}

func TestFingerprint(t *testing.T) {
	base := options(t)
	if same := base; same.fingerprint() != base.fingerprint() {
		t.Fatal("same options, two fingerprints")
	}
	for name, change := range map[string]func(*Options){
		"host":    func(o *Options) { o.Host = "beta.mine.upstream.test" },
		"network": func(o *Options) { o.Network = "other" },
		"image":   func(o *Options) { o.Image.Ref = "registry-cache.testbed/upstream-registry:2" },
		"CA":      func(o *Options) { o.CA = options(t).CA },
	} {
		t.Run(name, func(t *testing.T) {
			o := base
			change(&o)
			if o.fingerprint() == base.fingerprint() {
				t.Error("the change goes unnoticed")
			}
		})
	}
}

func testHosts(prefix string) []string {
	return []string{Host(prefix, "alpha"), Host(prefix, "beta"), Host(prefix, "gamma")}
}
