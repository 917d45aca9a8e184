package pull

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

func TestSince(t *testing.T) {
	log := accesslog.Records{{Path: "/1"}, {Path: "/2"}, {Path: "/3"}}
	for _, tc := range []struct {
		name          string
		before, after int
		want          int
	}{{"nothing new", 2, 2, 0}, {"from nothing", 0, 3, 3}, {"two more", 1, 3, 2}} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := newRecords(log[:tc.before], log[:tc.after])
			if err != nil || len(got) != tc.want {
				t.Fatalf("%d records, %v; want %d", len(got), err, tc.want)
			}
			if tc.want > 0 && got[0].Path != log[tc.before].Path {
				t.Errorf("the records begin with %s, want %s", got[0].Path, log[tc.before].Path)
			}
		})
	}
	// If a reset were not an error, requests in the new log would be missed.
	if _, err := newRecords(log, log[:1]); err == nil {
		t.Error("a log that was reset is treated as a log without requests")
	}
}

// TestAddressesFor checks that a Service without ports is skipped. A Service that the extension did
// not create, for example of type ExternalName, may have the extension's annotation but no ports.
func TestAddressesFor(t *testing.T) {
	const host = "alpha.upstream.test"
	service := func(upstream string, ports ...corev1.ServicePort) corev1.Service {
		return corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"upstream": upstream}},
			Spec:       corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.7", "fd00::7"}, Ports: ports},
		}
	}
	port := corev1.ServicePort{Port: 5000}
	got := cachetest.Addresses([]corev1.Service{service(host), service("beta.upstream.test", port), service(host, port)}, host)
	if want := []string{"10.96.0.7:5000", "[fd00::7]:5000"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
