package nodeconfig_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

var trusting = nodeconfig.Registry{
	Upstream: "alpha.test", Endpoint: "https://10.4.246.205:5000", UpstreamURL: "https://alpha.test",
	EndpointCA: []byte(golden.CACertificate), UpstreamCA: []byte(golden.CACertificate),
}

func TestHostsTOMLWithCertificates(t *testing.T) {
	endpointOnly, direct := trusting, trusting
	endpointOnly.UpstreamCA = nil
	direct.Endpoint = ""
	golden.Compare(t, "hosts-tls.toml", hostsTOML(endpointOnly))
	golden.Compare(t, "hosts-tls-upstream.toml", hostsTOML(trusting))
	golden.Compare(t, "hosts-direct.toml", hostsTOML(direct))
	golden.Compare(t, "unit-tls.service", nodeconfig.Unit([]nodeconfig.Registry{trusting, endpointOnly, dockerHub}, 0))
}

// TestDirectFileKeepsTheCAOfTheCache: containerd parses hosts.toml, and then reads the file that
// "ca" names. If the loop replaces the file in between, the pull must still find certificates.
func TestDirectFileKeepsTheCAOfTheCache(t *testing.T) {
	t.Parallel()
	n, ca := newNode(t), newTestCA(t, "cache")
	c := newCache(t, "alpha.test", ca, ready)
	c.UpstreamURL = "http://alpha.test"
	p := n.startFor(t, c.Registry)
	p.state("alpha.test", "mirror", "")
	c.become(answer(503))
	p.state("alpha.test", "direct", "answers 503")
	n.expectKind(t, c.Registry, "direct")
	content, err := os.ReadFile(n.path("alpha.test"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(content) {
		t.Errorf("%v: containerd could load no certificate from:\n%s", err, content)
	}
}

func TestCertificatesAreLeftOutWithoutHTTPS(t *testing.T) {
	plain := trusting
	plain.Endpoint, plain.UpstreamURL = "http://10.4.246.205:5000", "http://alpha.test"
	if content := hostsTOML(plain); strings.Contains(content, "ca") && strings.Contains(content, "CERTIFICATE") {
		t.Errorf("containerd would try HTTPS first:\n%s", content)
	}
}

// TestOnlyCertificatesGetToANode checks that neither text around certificates nor invalid
// certificates get into hosts.toml or the unit. If a CA file contains no certificate, each pull of
// containerd fails.
func TestOnlyCertificatesGetToANode(t *testing.T) {
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	noCertificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("none")}))
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"one":                  {golden.CACertificate, 1},
		"two":                  {golden.CACertificate + golden.CACertificate, 2},
		"text around":          {"''' [host.\"http://evil\"]\n" + golden.CACertificate + "'''\nserver = \"http://evil\"\n", 1},
		"with Windows lines":   {strings.ReplaceAll(golden.CACertificate, "\n", "\r\n"), 1},
		"a key beside it":      {key + golden.CACertificate, 1},
		"a key":                {key, 0},
		"of another type":      {strings.ReplaceAll(golden.CACertificate, "CERTIFICATE", "X509 CRL"), 0},
		"no certificate in it": {noCertificate, 0},
		"one broken, one fine": {noCertificate + golden.CACertificate, 1},
		"not PEM":              {"'''\n", 0},
		"empty":                {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			registry := trusting
			registry.EndpointCA, registry.UpstreamCA = []byte(test.text), nil
			content := hostsTOML(registry)
			var decoded map[string]any
			if err := toml.Unmarshal([]byte(content), &decoded); err != nil {
				t.Fatalf("%v:\n%s", err, content)
			}
			certificates, _ := decoded["certificates"].(string)
			if want := strings.Repeat(golden.CACertificate, test.want); certificates != want {
				t.Errorf("certificates:\n%s\nwant:\n%s", certificates, want)
			}
			hosts, _ := decoded["host"].(map[string]any)[registry.Endpoint].(map[string]any)
			if got, want := hosts["ca"] != nil, test.want > 0; got != want {
				t.Errorf("ca = %v", hosts["ca"])
			}
			if decoded["server"] != registry.UpstreamURL || decoded["ca"] != nil {
				t.Errorf("server = %v, ca = %v", decoded["server"], decoded["ca"])
			}
			back, err := nodeconfig.ParseArgument(registry.Argument())
			if err != nil || string(back.EndpointCA) != certificates {
				t.Errorf("the argument contains %q, %v", back.EndpointCA, err)
			}
		})
	}
}
