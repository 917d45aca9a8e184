package fieldbugs

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/manifest"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// configuredCache is a cache in a Shoot's manifest.
type configuredCache struct {
	Upstream string `json:"upstream"`
	HTTP     *struct {
		TLS bool `json:"tls"`
	} `json:"http"`
}

func configured(t *testing.T, name string) []configuredCache {
	t.Helper()
	file, err := os.Open(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	wanted, err := manifest.Read(name, file)
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Caches []configuredCache }
	if err := json.Unmarshal(wanted.Shoot.Spec.Extensions[0].ProviderConfig.Raw, &config); err != nil {
		t.Fatal(err)
	}
	return config.Caches
}

// TestHardNames checks that hardNames are upstreams in the manifest Names, and that their names are
// as difficult as bug s23 describes.
func TestHardNames(t *testing.T) {
	var upstreams []string
	for _, cache := range configured(t, Names) {
		upstreams = append(upstreams, cache.Upstream)
	}
	if want := append([]string{host("alpha"), host("beta")}, hardNames...); !slices.Equal(upstreams, want) {
		t.Errorf("the Shoot has %q, s23 wants %q", upstreams, want)
	}
	alike, long, withPort, addresses := map[string]int{}, 0, 0, 0
	for _, name := range hardNames {
		alike[strings.NewReplacer(".", "-", ":", "-").Replace(name)]++
		if len(name) == 60 {
			long++
		}
		if address, err := netip.ParseAddrPort(name); err == nil && address.Addr().Is6() {
			addresses++
		} else if strings.Contains(name, ":") {
			withPort++
		}
	}
	if alike["a-b-c-upstream-test"] != 2 || long != 1 || withPort != 1 || addresses != 1 || !slices.Contains(hardNames, "port-5000.upstream.test") {
		t.Errorf("%v alike, %d of 60 characters, %d with a port, %d addresses", alike, long, withPort, addresses)
	}
}

// TestSchemes checks that all caches in the manifest HTTPS use TLS, and none in TwoCaches.
func TestSchemes(t *testing.T) {
	for shoot, want := range map[string]bool{HTTPS: true, TwoCaches: false} {
		for _, cache := range configured(t, shoot) {
			if got := cache.HTTP == nil || cache.HTTP.TLS; got != want {
				t.Errorf("%s: tls of %s is %t, want %t", shoot, cache.Upstream, got, want)
			}
		}
	}
}

// TestMissingNames checks that a cache must have an address that no other cache has.
func TestMissingNames(t *testing.T) {
	const two = `{"upstream": "beta.upstream.test", "endpoint": "http://10.96.0.5:5000"}, {"upstream": "alpha.upstream.test"`
	for name, test := range map[string]struct {
		status, upstream, want string
	}{
		"it has one":              {readyShoot, "alpha.upstream.test", ""},
		"it has none":             {readyShoot, "[2001:db8::7]:5000", "[2001:db8::7]:5000 has no cache"},
		"another has the same":    {strings.Replace(readyShoot, `{"upstream": "alpha.upstream.test"`, two, 1), "alpha.upstream.test", "are both at http://10.96.0.5:5000"},
		"its address is not said": {strings.Replace(readyShoot, `"endpoint": "http://10.96.0.5:5000"`, `"endpoint": ""`, 1), "alpha.upstream.test", "alpha.upstream.test has no cache"},
		"a worker uses another":   {strings.Replace(readyShoot, `0.5:5000"]}]}]}`, `0.4:5000"]}]}]}`, 1), "alpha.upstream.test", "worker2 uses"},
	} {
		t.Run(name, func(t *testing.T) {
			missing, err := missingNames(statusOf(t, test.status), []string{test.upstream})
			if err != nil || (len(missing) > 0) != (test.want != "") || !strings.Contains(strings.Join(missing, "; "), test.want) {
				t.Errorf("%q, %v; want %q", missing, err, test.want)
			}
		})
	}
	if _, err := missingNames(status.Shoot{Extensions: []status.Extension{{Type: "registry-cache", ProviderStatus: json.RawMessage(`{`)}}}, nil); err == nil {
		t.Error("a status that cannot be read is no status in which nothing is missing")
	}
}

func statusOf(t *testing.T, text string) status.Shoot {
	t.Helper()
	var status status.Shoot
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatal(err)
	}
	return status
}

// TestRequireRest checks that requireRest detects an object that was written, created or deleted.
func TestRequireRest(t *testing.T) {
	const service, set, policy = "Service registry-x 101\n", "StatefulSet registry-x 1\n", "NetworkPolicy registry-x 1\n"
	count := len(hardNames) + 2
	services, others := strings.Repeat(service, count), strings.Repeat(set, count)+strings.Repeat(policy, count)
	once := func(text, from, to string) string { return strings.Replace(text, from, to, 1) }
	for name, test := range map[string]struct {
		services, others string
		holds            bool
	}{
		"as before":                   {services, others, true},
		"a Service was written":       {once(services, "101", "102"), others, false},
		"a Service is gone":           {once(services, service, ""), others, false},
		"a StatefulSet was changed":   {services, once(others, set, "StatefulSet registry-x 2\n"), false},
		"a StatefulSet came":          {services, others + "StatefulSet registry-y 1\n", false},
		"a NetworkPolicy was changed": {services, once(others, policy, "NetworkPolicy registry-x 2\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigOf(func(line string) string {
				if strings.Contains(line, " services ") && strings.Contains(line, ".resourceVersion}") {
					return test.services
				}
				return test.others
			})
			err := r.requireRest(t.Context(), services+others)
			wantClaim(t, r, err, "after that, no Service, StatefulSet or NetworkPolicy is written", test.holds)
		})
	}
}

// TestRequireRestOfNothing checks that requireRest fails if some or all objects were missing from
// the start.
func TestRequireRestOfNothing(t *testing.T) {
	const service, set = "Service registry-x 101\n", "StatefulSet registry-x 1\n"
	for _, answer := range []struct{ services, others string }{
		{"", ""},
		{strings.Repeat(service, len(hardNames)+2), ""},
		{"", strings.Repeat(set, len(hardNames)+2)},
		{service, set},
	} {
		r := rigOf(func(line string) string {
			if strings.Contains(line, " services ") {
				return answer.services
			}
			return answer.others
		})
		err := r.requireRest(t.Context(), answer.services+answer.others)
		wantClaim(t, r, err, "after that, no Service, StatefulSet or NetworkPolicy is written", false)
	}
}

// TestDifference checks that difference returns the lines of objects that were written.
func TestDifference(t *testing.T) {
	for _, test := range []struct{ before, now, want string }{
		{"a 1\nb 1\n", "a 1\nb 1\n", ""},
		{"a 1\nb 1\n", "a 1\nb 2\n", "; before b 1; now b 2"},
		{"a 11\n", "", "; before a 11"},
		{"ba 1\n", "ba 1\na 1\n", "; now a 1"},
	} {
		if got := difference(test.before, test.now); got != test.want {
			t.Errorf("%q to %q: %q, want %q", test.before, test.now, got, test.want)
		}
	}
}

// TestOtherSchemes checks that the status must have the scheme, and that the workers must use the
// endpoint in the status.
func TestOtherSchemes(t *testing.T) {
	secure := strings.ReplaceAll(readyShoot, `"http://10`, `"https://10`)
	for name, test := range map[string]struct{ status, scheme, want string }{
		"HTTP":                    {readyShoot, byHTTP, ""},
		"HTTPS":                   {secure, byHTTPS, ""},
		"the old one":             {readyShoot, byHTTPS, "want https://"},
		"the new one":             {secure, byHTTP, "want http://"},
		"a worker still by HTTP":  {strings.Replace(secure, `"hosts": ["https:`, `"hosts": ["http:`, 1), byHTTPS, `worker uses "http://10.96.0.5:5000"`},
		"the status is not there": {`{}`, byHTTPS, "the status of the Extension has no cache"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong, err := otherSchemes(statusOf(t, test.status), test.scheme)
			if err != nil || (len(wrong) > 0) != (test.want != "") || !strings.Contains(strings.Join(wrong, "; "), test.want) {
				t.Errorf("%q, %v; want %q", wrong, err, test.want)
			}
		})
	}
}

// TestRequireNoX509 checks which errors count, and that a journal without a pull is an error.
func TestRequireNoX509(t *testing.T) {
	const pulled = `time="2026-01-02T03:04:05Z" level=info msg="Pulled image \"alpha.upstream.test/a:latest\" with image id"` + "\n"
	const said = `level=info msg="trying next host" error="tls: failed to verify certificate: x509: certificate signed by unknown authority"` + "\n"
	const claim = "containerd of worker reports no certificate error"
	for name, test := range map[string]struct {
		journal string
		proves  bool
		holds   bool
	}{
		"two pulls":        {pulled + pulled, true, true},
		"an error":         {pulled + said + pulled, true, false},
		"another server":   {pulled + strings.Replace(said, "certificate signed by unknown authority", "cannot validate certificate for 10.96.0.5 because it "+otherServerError, 1), true, true},
		"no pull":          {`level=info msg="PullImage \"alpha\""` + "\n", false, false},
		"an empty journal": {"", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var line string
			r := rigOf(func(typed string) string {
				line = typed
				return test.journal
			})
			err := r.requireNoX509(t.Context(), "worker", "@7")
			if test.proves {
				wantClaim(t, r, err, claim, test.holds)
			} else if err == nil || !strings.Contains(err.Error(), "proves nothing") {
				t.Errorf("%v, want that it proves nothing", err)
			}
			if line != "exec worker -- journalctl --unit=containerd.service --since=@7 --output=cat" {
				t.Error(line)
			}
		})
	}
}
