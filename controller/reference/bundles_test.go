package reference

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// TestResolveLimitsTheSumOfCABundles: a Shoot that bypassed admission must not lead to a systemd
// unit that nodes cannot read.
func TestResolveLimitsTheSumOfCABundles(t *testing.T) {
	bundle := login(func(s *corev1.Secret) {
		s.Data = map[string][]byte{"bundle.crt": []byte(strings.Repeat(golden.CACertificate, v1alpha3.MaxCABundleSize/len(golden.CACertificate)))}
	})
	resolve := func(count int) string {
		config := &v1alpha3.RegistryConfig{}
		for i := range count {
			config.Caches = append(config.Caches, v1alpha3.RegistryCache{
				Upstream: fmt.Sprintf("r%d.test", i), CABundleSecretReferenceName: ptr.To("login"),
			})
		}
		got, mistakes, err := Resolve(t.Context(), fake.NewFakeClient(bundle), namespace, resources("Secret"), config)
		if err != nil || (got == nil) != (len(mistakes) > 0) {
			t.Fatal(got, mistakes, err)
		}
		if got != nil {
			return ""
		}
		return mistakes.ToAggregate().Error()
	}
	if got := resolve(4); got != "" {
		t.Errorf("four bundles: %s", got)
	}
	const want = "caches[4].caBundleSecretReferenceName: Invalid value: the CA bundles of all caches have "
	if got := resolve(20); !strings.HasPrefix(got, want) {
		t.Errorf("twenty bundles: got %q, want %q", got, want)
	}
}
