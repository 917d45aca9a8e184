package nodeconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestScriptRemovesWhatHasNoCacheAnyMore(t *testing.T) {
	n := newNode(t)
	c := newCache(t, "alpha.test", ready)
	for _, upstream := range []string{"beta.test", "with-more.test", "alpha.test:5000", "[::1]", "alpha"} {
		n.write(t, upstream, nodeconfig.HostsTOML(nodeconfig.Registry{Upstream: upstream}))
	}
	n.write(t, "unmanaged.test", unmanaged)
	if err := os.WriteFile(filepath.Join(n.certs, "with-more.test", "ca.crt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	n.run(t, c.Registry)
	n.expectEntries(t, "alpha.test", "unmanaged.test", "with-more.test")
	if _, err := os.Stat(n.path("with-more.test")); !os.IsNotExist(err) {
		t.Errorf("hosts.toml beside another file stays: %v", err)
	}
	n.run(t)
	n.expectEntries(t, "unmanaged.test", "with-more.test")
}

func TestScriptIgnoresArgumentsThatAreNone(t *testing.T) {
	n := newNode(t)
	good := newCache(t, "good.test", ready)
	bad := []string{
		"", "a", ",,", "a.test,http://b", "a.test,http://b,https://c,d", "../x," + good.Endpoint + ",https://c", "..," + good.Endpoint + ",https://c",
		"a/b," + good.Endpoint + ",https://c", "a.test," + good.Endpoint + ",https://c\"", "a.test," + good.Endpoint + ",https://c\nx",
		"a.test,file:///etc/passwd,https://c", "a.test," + good.Endpoint + "/path,https://c", "a.test,-o/x,https://c", "a*," + good.Endpoint + ",https://c",
		"A.test," + good.Endpoint + ",https://c", "$(touch x)," + good.Endpoint + ",https://c", "a b," + good.Endpoint + ",https://c",
	}
	log := n.start(t, append(bad, good.Argument())...).wait()
	n.expectEntries(t, "good.test")
	if got := strings.Count(log, "ignoring the argument"); got != len(bad) {
		t.Errorf("%d arguments are ignored, want %d:\n%s", got, len(bad), log)
	}
}
