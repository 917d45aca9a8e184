package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/util/keyutil"
)

// probesPerSecond is the rate of 500 nodes, which probe every 6 to 6.5 s.
const probesPerSecond = 500 / 6.25

// BenchmarkProbe measures the CPU time that a node's probe costs the cache. Each probe opens a
// connection, since a node starts a new curl for each round of probes. A cache with HTTPS that is
// healthy is probed at its health port in 39 of 40 rounds.
func BenchmarkProbe(b *testing.B) {
	for _, test := range []struct{ name, scheme string }{{"http", "http"}, {"https", "https"}, {"health", "https"}} {
		b.Run(test.name, func(b *testing.B) {
			cache, _, process := startCache(b, test.scheme)
			url := cache.url + "/v2/"
			if test.name == "health" {
				url = cache.debugURL + "/debug/health"
			}
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server's time counts
			}}
			used := cpuTime(b, process)
			for b.Loop() {
				probe(b, client, url)
			}
			each := (cpuTime(b, process) - used) / time.Duration(b.N)
			b.ReportMetric(float64(each.Microseconds()), "cpu-µs/op")
			b.ReportMetric(100*probesPerSecond*each.Seconds(), "%core/500-nodes")
		})
	}
}

// startCache starts a cache whose upstream cannot be reached. It returns the cache, the certificate
// that nodes must trust if the scheme is https, and the process.
func startCache(b *testing.B, scheme string) (cache *servedCache, ca []byte, process procfs.Proc) {
	b.Helper()
	address := freeAddress(b)
	host, _, _ := net.SplitHostPort(address)
	_, healthPort, _ := net.SplitHostPort(freeAddress(b))
	cache = &servedCache{url: "http://" + address, debugURL: "http://" + net.JoinHostPort(host, healthPort), storage: b.TempDir(), log: &syncBuffer{}}
	config := cache.config("https://upstream.test")
	if scheme == "https" {
		certificate, key := certificateOfCache(b, address)
		config = strings.Replace(config, "http:\n", "http:\n  tls: {certificate: "+certificate+", key: "+key+"}\n", 1)
		var err error
		if ca, err = os.ReadFile(certificate); err != nil {
			b.Fatal(err)
		}
	}
	process, err := procfs.NewProc(cache.start(b, writeConfig(b, config)).cmd.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	cache.url = scheme + "://" + address
	return cache, ca, process
}

func probe(b *testing.B, client *http.Client, url string) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		b.Fatalf("status %d", response.StatusCode)
	}
}

func cpuTime(b *testing.B, process procfs.Proc) time.Duration {
	b.Helper()
	stat, err := process.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// certificateOfCache writes a certificate with a key like those of the controller: ECDSA, P-256.
func certificateOfCache(b *testing.B, address string) (certificateFile, keyFile string) {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{netip.MustParseAddrPort(address).Addr().AsSlice()},
		Subject: pkix.Name{CommonName: "cache"}, BasicConstraintsValid: true, IsCA: true, // curl trusts it as its own CA
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		b.Fatal(err)
	}
	encodedKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		b.Fatal(err)
	}
	certificateFile, keyFile = filepath.Join(b.TempDir(), "tls.crt"), filepath.Join(b.TempDir(), "tls.key")
	for file, content := range map[string][]byte{certificateFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyFile: encodedKey} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return certificateFile, keyFile
}
