package nodeconfig_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const unmanaged = "server = \"https://mirror.example.com\"\n"

func TestScriptLeavesForeignFilesAlone(t *testing.T) {
	for name, create := range map[string]func(t *testing.T, n *node){
		"another hosts.toml":   func(t *testing.T, n *node) { n.write(t, "alpha.test", unmanaged) },
		"an empty one":         func(t *testing.T, n *node) { n.write(t, "alpha.test", "") },
		"mark in another line": func(t *testing.T, n *node) { n.write(t, "alpha.test", unmanaged+nodeconfig.Marker+"\n") },
		"mark in a longer line": func(t *testing.T, n *node) {
			n.write(t, "alpha.test", nodeconfig.Marker+"s\n")
		},
		"a link to nowhere": func(t *testing.T, n *node) {
			if err := os.MkdirAll(filepath.Dir(n.path("alpha.test")), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/nowhere", n.path("alpha.test")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			create(t, n)
			before, _ := os.Lstat(n.path("alpha.test"))
			c := newCache(t, "alpha.test", ready)
			log := n.run(t, c.Registry) // with an argument for alpha.test
			n.run(t)                    // without arguments
			after, err := os.Lstat(n.path("alpha.test"))
			if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) || before.Size() != after.Size() {
				t.Errorf("an unmanaged file is changed: %v, %v", after, err)
			}
			if !strings.Contains(log, "is not ours, leaving it alone") {
				t.Errorf("the log does not say so:\n%s", log)
			}
		})
	}
}

func TestScriptRespectsAForeignFileThatAppearsWhileItWaits(t *testing.T) {
	n := newNode(t)
	c := newCache(t, "alpha.test", func(http.ResponseWriter, *http.Request) { n.write(t, "alpha.test", unmanaged) })
	n.run(t, c.Registry)
	if got, _ := os.ReadFile(n.path("alpha.test")); string(got) != unmanaged {
		t.Errorf("it is overwritten with:\n%s", got)
	}
	n.expectEntries(t, "alpha.test")
}

func TestScriptLeavesAnUnchangedFileAlone(t *testing.T) {
	n := newNode(t)
	c := newCache(t, "alpha.test", answer(http.StatusServiceUnavailable))
	n.write(t, "alpha.test", nodeconfig.HostsTOML(c.Registry))
	before, _ := os.Stat(n.path("alpha.test"))
	n.run(t, c.Registry)
	after, err := os.Stat(n.path("alpha.test"))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("an unchanged file is written again: %v", err)
	}
	if got := c.requests.Load(); got != 0 {
		t.Errorf("the cache is asked %d times for an unchanged file", got)
	}
}

func TestScriptRemovesTheFileOfAnOldEndpointBeforeItWaits(t *testing.T) {
	n := newNode(t)
	old := nodeconfig.Registry{Upstream: "alpha.test", Endpoint: "http://10.0.0.1:5000", UpstreamURL: "https://alpha.test"}
	n.write(t, "alpha.test", nodeconfig.HostsTOML(old))
	c := newCache(t, "alpha.test", func(http.ResponseWriter, *http.Request) {
		if _, err := os.Stat(filepath.Dir(n.path("alpha.test"))); !os.IsNotExist(err) {
			t.Errorf("pulls still go to the old endpoint while the new one is awaited: %v", err)
		}
	})
	n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
}

func TestScriptKeepsTheFileOfTheSameEndpointUntilItIsReplaced(t *testing.T) {
	n := newNode(t)
	c := newCache(t, "alpha.test", func(http.ResponseWriter, *http.Request) {
		if _, err := os.Stat(n.path("alpha.test")); err != nil {
			t.Errorf("the working configuration is removed: %v", err)
		}
	})
	other := c.Registry
	other.UpstreamURL = "https://old.test"
	n.write(t, "alpha.test", nodeconfig.HostsTOML(other))
	n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
}
