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

func TestOptionsValidate(t *testing.T) {
	valid := options(t)
	if err := valid.validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		`prefix "a.b": must be a DNS label`:             func(o *Options) { o.Prefix = "a.b" },
		`prefix "": must be a DNS label`:                func(o *Options) { o.Prefix = "" },
		`host "https://x": must be a DNS name`:          func(o *Options) { o.Host = "https://x" },
		`host "A.test": must be a DNS name`:             func(o *Options) { o.Host = "A.test" },
		"alpha.mine.upstream.test: network is empty":    func(o *Options) { o.Network = "" },
		"alpha.mine.upstream.test: no CA":               func(o *Options) { o.CA = nil },
		"alpha.mine.upstream.test: no image":            func(o *Options) { o.Image = image.Built{} },
		"test: credentials: user name contains a colon": func(o *Options) { o.Credentials = &Credentials{Username: []byte("a:b")} },
		"test: credentials: user name is empty":         func(o *Options) { o.Credentials = &Credentials{} },
	} {
		t.Run(want, func(t *testing.T) {
			o := valid
			change(&o)
			if err := o.validate(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	base := options(t)
	if same := base; same.fingerprint() != base.fingerprint() {
		t.Fatal("same options, two fingerprints")
	}
	for name, change := range map[string]func(*Options){
		"host":      func(o *Options) { o.Host = "beta.mine.upstream.test" },
		"network":   func(o *Options) { o.Network = "other" },
		"image":     func(o *Options) { o.Image.Ref = "registry-cache.testbed/upstream-registry:2" },
		"CA":        func(o *Options) { o.CA = options(t).CA },
		"protected": func(o *Options) { o.Credentials = &Credentials{Username: []byte("robot")} },
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

// TestFingerprintHasNoCredentials: everybody can read the label with the fingerprint. A fingerprint
// that depends on the password could be used to test guesses.
func TestFingerprintHasNoCredentials(t *testing.T) {
	one, other := options(t), options(t)
	other.CA = one.CA
	one.Credentials = &Credentials{Username: []byte("robot"), Password: []byte("one")}
	other.Credentials = &Credentials{Username: []byte("robot"), Password: []byte("other")}
	if one.fingerprint() != other.fingerprint() {
		t.Error("the fingerprint depends on the password")
	}
}

func testHosts(prefix string) []string {
	return []string{Host(prefix, "alpha"), Host(prefix, "beta"), Host(prefix, "gamma")}
}
