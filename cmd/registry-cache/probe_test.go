package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	extensions "github.com/gardener/gardener/extensions/pkg/controller"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	"github.com/prometheus/procfs"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
)

// probesPerSecond are those of 500 nodes, whose loops ask every 6 to 6.5 s.
const probesPerSecond = 500 / 6.25

// BenchmarkProbe measures the CPU time of the cache for a node's probe, GET /v2/ on a connection of
// its own: curl ends after each.
func BenchmarkProbe(b *testing.B) {
	for _, scheme := range []string{"http", "https"} {
		b.Run(scheme, func(b *testing.B) {
			cache := &servedCache{url: "http://" + freeAddress(b), debugURL: "http://" + freeAddress(b), storage: b.TempDir(), log: &syncBuffer{}}
			config := cache.config("https://upstream.test")
			if scheme == "https" {
				certificate, key := certificateOfCache(b)
				config = strings.Replace(config, "http:\n", "http:\n  tls: {certificate: "+certificate+", key: "+key+"}\n", 1)
			}
			process, err := procfs.NewProc(cache.start(b, writeConfig(b, config)).cmd.Process.Pid)
			if err != nil {
				b.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server's time counts
			}}
			used := cpuTime(b, process)
			for b.Loop() {
				probe(b, client, scheme+strings.TrimPrefix(cache.url, "http")+"/v2/")
			}
			each := (cpuTime(b, process) - used) / time.Duration(b.N)
			b.ReportMetric(float64(each.Microseconds()), "cpu-µs/op")
			b.ReportMetric(100*probesPerSecond*each.Seconds(), "%core/500-nodes")
		})
	}
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

// certificateOfCache writes a certificate and a key as the controller makes them.
func certificateOfCache(b *testing.B) (certificateFile, keyFile string) {
	b.Helper()
	cluster := &extensions.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "shoot"}, Shoot: &gardencorev1beta1.Shoot{}}
	ca, err := certificate.Load(b.Context(), logr.Discard(), clock.RealClock{}, fake.NewFakeClient(), cluster)
	if err != nil {
		b.Fatal(err)
	}
	c := v1alpha3.RegistryCache{Upstream: "upstream.test"}
	issued, err := ca.Issue(b.Context(), &c, v1alpha3.Identify([]v1alpha3.RegistryCache{c}, nil)[0])
	if err != nil {
		b.Fatal(err)
	}
	certificateFile, keyFile = filepath.Join(b.TempDir(), "tls.crt"), filepath.Join(b.TempDir(), "tls.key")
	for file, content := range map[string][]byte{certificateFile: issued.Certificate, keyFile: issued.PrivateKey} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return certificateFile, keyFile
}
