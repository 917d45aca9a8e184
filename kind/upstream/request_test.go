package upstream

import (
	"slices"
	"strings"
	"testing"
)

func TestRequestOfAProxy(t *testing.T) {
	o := options(t)
	o.Host = Host("mine", "proxy")
	r, err := o.proxyLaunch().request()
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "mine-upstream-proxy" || r.Labels[proxyLabel] != "proxy.mine.upstream.test" || r.Labels[hostLabel] != "" {
		t.Errorf("name %q, labels %v", r.Name, r.Labels)
	}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
}

func TestRequest(t *testing.T) {
	o := options(t)
	o.Aliases = []string{"api.example.test"}
	r := request(o, []byte("certificate"), []byte("key"))
	if r.Name != "mine-upstream-alpha" || r.Labels["registry-cache.testbed"] != "mine" {
		t.Errorf("name %q, labels %v", r.Name, r.Labels)
	}
	if got := strings.Join(r.Cmd, " "); got != "serve -sibling site.alpha.mine.upstream.test -foreign alpha.mine.elsewhere.test" {
		t.Errorf("arguments %q", got)
	}
	want := []string{"alpha.mine.upstream.test", "site.alpha.mine.upstream.test", "alpha.mine.elsewhere.test", "api.example.test"}
	if !slices.Equal(r.NetworkAliases["kind"], want) {
		t.Errorf("aliases %v, want %v", r.NetworkAliases, want)
	}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
}
