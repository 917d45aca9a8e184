package v1alpha3_test

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func TestValidateProxyURL(t *testing.T) {
	fields := map[string]func(url string) *v1alpha3.Proxy{
		"httpProxy":  func(url string) *v1alpha3.Proxy { return &v1alpha3.Proxy{HTTPProxy: &url} },
		"httpsProxy": func(url string) *v1alpha3.Proxy { return &v1alpha3.Proxy{HTTPSProxy: &url} },
	}
	for name, proxy := range fields {
		for _, url := range []string{"http://proxy.test:3128", "https://10.0.0.1", "http://[2001:db8::1]:3128/"} {
			if got := validate(v1alpha3.RegistryCache{Upstream: "a.test", Proxy: proxy(url)}); got != "" {
				t.Errorf("%s %q is rejected: %s", name, url, got)
			}
		}
		for _, url := range []string{
			"", "proxy.test:3128", "proxy.test", "socks5://proxy.test", "http://user:secret@proxy.test", "http://proxy.test/pac", "http://proxy.test?x",
			"http://proxy test", "http://$(HOST)", "http://proxy.test\n",
		} {
			got := validate(v1alpha3.RegistryCache{Upstream: "a.test", Proxy: proxy(url)})
			if !strings.Contains(got, "caches[0].proxy."+name) || strings.Contains(got, "secret") {
				t.Errorf("%s %q: got %q, want an error that does not repeat the URL", name, url, got)
			}
		}
	}
	if got := validate(v1alpha3.RegistryCache{Upstream: "a.test", Proxy: &v1alpha3.Proxy{}}); got != "" {
		t.Errorf("an empty proxy is rejected: %s", got)
	}
}

func TestValidateNoProxy(t *testing.T) {
	for _, list := range []string{
		"a.test", ".a.test", "*.a.test", "a.test:5000", ".a.test:443", "10.0.0.1", "10.0.0.1:80", "10.0.0.1/8", "::1", "[::1]:80", "fd00::/8",
		"localhost,10.0.0.0/8,.svc", "a.test, b.test",
	} {
		if got := validate(v1alpha3.RegistryCache{Upstream: "a.test", Proxy: &v1alpha3.Proxy{NoProxy: &list}}); got != "" {
			t.Errorf("%q is rejected: %s", list, got)
		}
	}
	for _, list := range []string{
		"", "*", "a.test,*", ",", "a.test,", "a.test,,b.test", "http://a.test", "a.test/x", "A.test", "a_b.test", "*a.test", "a.*.test", "..a.test", ".", "*.",
		"10.0.0.0/33", "FD00::/8", "10.0.0/8", "1.2.3", "[::1]", "[::1]/8", "fe80::1%eth0", "a.test:0", "a.test:x", "a.test b.test", "a.test\tb.test", "a.test\n",
		"$(HOST)", "a.test;id",
	} {
		if got := validate(v1alpha3.RegistryCache{Upstream: "a.test", Proxy: &v1alpha3.Proxy{NoProxy: &list}}); !strings.Contains(got, "caches[0].proxy.noProxy") {
			t.Errorf("%q: got %q, want an error at caches[0].proxy.noProxy", list, got)
		}
	}
}

func TestValidateNoProxyAdvises(t *testing.T) {
	for list, want := range map[string]string{"*": "omit proxy instead", "a.test,": "separated by single commas", "[::1]": "must have no brackets"} {
		if got := validate(v1alpha3.RegistryCache{Upstream: "a.test", Proxy: &v1alpha3.Proxy{NoProxy: &list}}); !strings.Contains(got, want) {
			t.Errorf("%q: %q does not contain %q", list, got, want)
		}
	}
}

func TestNoProxyEntries(t *testing.T) {
	list := "a.test, 10.0.0.0/8 ,::1"
	got := v1alpha3.NoProxyEntries(&v1alpha3.Proxy{NoProxy: &list})
	if strings.Join(got, "|") != "a.test|10.0.0.0/8|::1" {
		t.Errorf("got %q", got)
	}
	if v1alpha3.NoProxyEntries(nil) != nil || v1alpha3.NoProxyEntries(&v1alpha3.Proxy{}) != nil {
		t.Error("got entries for a nil or empty proxy")
	}
}
