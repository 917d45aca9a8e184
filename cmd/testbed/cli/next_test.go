package cli

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

func TestNextSaysWhatIsCached(t *testing.T) {
	manifest := configuration.Default()
	manifest.Shoot.Manifest, manifest.Upstreams = "/a/shoot.yaml", []configuration.Upstream{{Name: "alpha"}}
	direct := configuration.Default()
	direct.Upstreams = []configuration.Upstream{{Name: "one", Cached: ptr.To(false)}}
	for want, config := range map[string]*configuration.Testbed{
		"pulls of alpha.upstream.test and beta.upstream.test go through the caches as soon as these are ready, pulls of gamma.upstream.test go direct": nil,
		"The testbed is up: pulls of one.upstream.test go direct.\n":                                                                                   direct,
		"The testbed is up: the Shoot is that of ":                                                                                                     manifest,
	} {
		if next := next(kindtest.Configured(t, t.TempDir(), config)); !strings.Contains(next, want) {
			t.Errorf("want %q in:\n%s", want, next)
		}
	}
}

func TestNextNamesTheTestbedThatIsMeant(t *testing.T) {
	for _, tc := range []struct {
		prefix    string
		want, not string
	}{
		{kind.DefaultPrefix, "make down ", "--prefix"},
		{"other", "bin/testbed down --prefix other ", "make "},
	} {
		t.Run(tc.prefix, func(t *testing.T) {
			testbed, err := kind.New(kind.Options{Prefix: tc.prefix})
			if err != nil {
				t.Fatal(err)
			}
			next := next(testbed)
			if !strings.Contains(next, tc.want) || strings.Contains(next, tc.not) {
				t.Errorf("want %q and not %q in:\n%s", tc.want, tc.not, next)
			}
		})
	}
}
