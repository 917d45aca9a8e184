package cache

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/bench"
)

// TestConfigurations: each contender sends its requests to the line, and stores only on its own
// volume.
func TestConfigurations(t *testing.T) {
	s := site{
		Upstream: "http://192.0.2.1:5000", Volume: "/volumes/x", Folder: "/logs", Serve: "192.0.2.2:80", Debug: "192.0.2.3:81",
	}
	own := map[string]string{Ours: `\ncache: \{upstream`, Stock: `\n  cache: \{blobdescriptor`, Nginx: `proxy_cache_lock on`}
	for _, name := range []string{Ours, Stock, Nginx} {
		s.Name = name
		text, err := configure(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`\b192\.0\.2\.1:5000\b`, `/volumes/x\b`, `\b192\.0\.2\.2:80\b`, own[name]} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: no %s in\n%s", name, want, text)
			}
		}
	}
}

// TestUpstream: the upstream is not a cache.
func TestUpstream(t *testing.T) {
	text, err := configure(site{Name: Upstream, Volume: "/volumes/x", Serve: "192.0.2.2:80"})
	if err != nil || !strings.Contains(text, `rootdirectory: "/volumes/x"`) || strings.Contains(text, "proxy") {
		t.Errorf("error %v, configuration:\n%s", err, text)
	}
}

func TestDirect(t *testing.T) {
	direct, err := startContender(t.Context(), Direct, nil, site{Upstream: "http://192.0.2.1"})
	if err != nil || direct.URL != "http://192.0.2.1" {
		t.Fatalf("%+v, error %v", direct, err)
	}
	usage, err := direct.usage()
	if err != nil || usage != (bench.Usage{}) || direct.stop() != nil {
		t.Errorf("usage %+v, error %v", usage, err)
	}
}
