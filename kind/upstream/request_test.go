package upstream

import (
	"fmt"
	"strings"
	"testing"
)

func TestRequestOfAProtectedUpstream(t *testing.T) {
	o := options(t)
	o.Credentials = &Credentials{Username: []byte("robot"), Password: []byte("secret")}
	r := request(o, []byte("certificate"), []byte("key"))
	if got := strings.Join(r.Cmd, " "); got != "serve -credentials /var/lib/upstream/credentials.json" {
		t.Errorf("arguments %q", got)
	}
	if text := fmt.Sprintf("%v %v %v", r.Cmd, r.Env, r.Labels); strings.Contains(text, "secret") || strings.Contains(text, "robot") {
		t.Errorf("the description of the container has the credentials: %s", text)
	}
}

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
	r := request(o, []byte("certificate"), []byte("key"))
	if r.Name != "mine-upstream-alpha" || r.Labels["registry-cache.testbed"] != "mine" {
		t.Errorf("name %q, labels %v", r.Name, r.Labels)
	}
	if alias := r.NetworkAliases["kind"]; len(alias) != 1 || alias[0] != o.Host {
		t.Errorf("aliases %v", r.NetworkAliases)
	}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
}
