package shoot_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/webhook/shoot"
)

// TestCheckLimitsTotalSizeOfCABundles checks bundles that are too large only in total.
func TestCheckLimitsTotalSizeOfCABundles(t *testing.T) {
	bundle := strings.Repeat(golden.CACertificate, v1alpha3.MaxCABundleSize/len(golden.CACertificate))
	secrets := func(_ context.Context, key client.ObjectKey) (*corev1.Secret, error) {
		secret := &corev1.Secret{Immutable: new(true), Data: map[string][]byte{"bundle.crt": []byte(bundle)}}
		secret.Namespace, secret.Name = key.Namespace, key.Name
		return secret, nil
	}
	check := func(count int) string {
		var caches []string
		for i := range count {
			caches = append(caches, fmt.Sprintf(`{"upstream":"r%d.test","caBundleSecretReferenceName":"ca"}`, i))
		}
		s := edited(withConfig(strings.Join(caches, ",")), func(s *gardencorev1beta1.Shoot) {
			s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{
				{Name: "ca", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "ca"}},
			}
		})
		errs := shoot.Check(t.Context(), s, nil, secrets)
		if len(errs) == 0 {
			return ""
		}
		return errs.ToAggregate().Error()
	}
	if got := check(4); got != "" {
		t.Errorf("four bundles: %s", got)
	}
	want := configPath + ".caches[4].caBundleSecretReferenceName: Invalid value: the CA bundles of all caches have "
	if got := check(20); !strings.HasPrefix(got, want) {
		t.Errorf("twenty bundles: got %q, want %q", got, want)
	}
}
