package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/gardener/extensions/pkg/util/secret/manager"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

func mistaken(c *v1alpha3.RegistryConfig) { c.Caches[0].Upstream = "not valid" }

// TestTakeoverMovesBetween checks that a migration between the two reconciliations loses nothing,
// and leaves nothing of gardener-extension-registry-cache.
func TestTakeoverMovesBetween(t *testing.T) {
	for name, test := range map[string]struct {
		move    func(*testing.T, *landscape)
		cleaned string
		left    []string
	}{
		"awake": {move: func(t *testing.T, l *landscape) { l.migrated(t, func(*v1alpha3.RegistryConfig) {}) }, left: []string{alpha, beta}},
		"hibernated": {move: func(t *testing.T, l *landscape) {
			l.restored(t, false)
			l.changeShoot(t)
		}, left: []string{alpha, beta}},
		"with a removal": {move: func(t *testing.T, l *landscape) {
			l.migrated(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
		}, cleaned: alpha, left: []string{beta}},
		"with a mistake": {move: func(t *testing.T, l *landscape) {
			l.migrated(t, mistaken)
			if got := upstreamsOf(l.extension(t)); !slices.Equal(got, []string{alpha, beta}) {
				t.Errorf("after the restoration, the status has %v", got)
			}
			l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches[0].Upstream = alpha })
		}, left: []string{alpha, beta}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newOriginal(t)
			l.reconciled(t)
			var cleaned []string
			l.cleaned = func(_ string, args []string) { cleaned = append(cleaned, args...) }
			test.move(t, l)
			for range 2 {
				l.reconciled(t)
			}
			if got := strings.Join(cleaned, " "); !strings.Contains(got, test.cleaned) || test.cleaned == "" && got != "" {
				t.Errorf("the cleaner ran with %q, want it for %q", got, test.cleaned)
			}
			l.assertInShoot(t, "in the end", test.left...)
		})
	}
}

// TestTakeoverDisabledBetween checks that nothing remains in the shoot.
func TestTakeoverDisabledBetween(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *landscape){
		"awake":         func(*testing.T, *landscape) {},
		"hibernated":    func(t *testing.T, l *landscape) { l.changeShoot(t, hibernated) },
		"shoot deleted": func(t *testing.T, l *landscape) { l.changeShoot(t, deleting) },
		"moved":         func(t *testing.T, l *landscape) { l.migrated(t, func(*v1alpha3.RegistryConfig) {}) },
		"moved hibernated": func(t *testing.T, l *landscape) {
			l.changeShoot(t, hibernated)
			l.restored(t, false)
		},
		"moved hibernated with a mistake": func(t *testing.T, l *landscape) {
			l.changeShoot(t, hibernated)
			l.configure(t, mistaken)
			l.restored(t, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newOriginal(t)
			l.reconciled(t)
			before(t, l)
			if err := l.delete(t); err != nil {
				t.Fatal(err)
			}
			l.changeShoot(t)
			l.assertInShoot(t, "in the end")
		})
	}
}

// TestTakeoverWithRename checks that the Service that nodes use is not deleted.
func TestTakeoverWithRename(t *testing.T) {
	for at, when := range []string{"in the first", "in the second"} {
		t.Run(when, func(t *testing.T) {
			l := newOriginal(t)
			var was string
			for i := range 2 {
				if i == at {
					l.configure(t, renamed(new("new")))
				}
				if i == 1 {
					was = l.services(t)[idOf(alpha).Name]
				}
				l.reconciled(t)
			}
			if now := l.services(t); was == "" || now[idOf(alpha).Name] != was || now["registry-new"] == "" {
				t.Errorf("the Services are %v, want %s at %q too", now, idOf(alpha).Name, was)
			}
		})
	}
}

// TestTakeoverWithReplacement checks that a cache with another StorageClass gets a new volume.
func TestTakeoverWithReplacement(t *testing.T) {
	for name, replace := range map[string]func(*testing.T, *landscape){
		"in the first": func(t *testing.T, l *landscape) {
			l.configure(t, func(c *v1alpha3.RegistryConfig) {
				c.Caches[0].Volume = &v1alpha3.Volume{StorageClassName: new("other")}
			})
			l.reconciled(t)
		},
		"removed in the first, back in the second": func(t *testing.T, l *landscape) {
			l.holdClaim(t, alpha)
			returned(t, l, func() { l.reconciled(t) })
			if err := l.reconcile(t); !retry.IsWaiting(err) || !strings.Contains(err.Error(), "the earlier cache of "+alpha) {
				t.Errorf("while the claim stays: error = %v", err)
			}
			l.freeClaim(t, alpha)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newOriginal(t)
			replace(t, l)
			for range 2 {
				l.reconciled(t)
			}
			claim := claimOf(alpha)
			if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if class := claim.Spec.StorageClassName; class == nil || *class != "other" {
				t.Errorf("the claim has class %v", class)
			}
		})
	}
}

// TestTakeoverWithAddition checks that the first reconciliation neither deploys nor watches a cache
// that is added.
func TestTakeoverWithAddition(t *testing.T) {
	l := newOriginal(t)
	l.configure(t, addFirst(gamma))
	for _, want := range []bool{false, true} {
		l.reconciled(t)
		objects, err := managedresources.GetObjects(t.Context(), ofScheme{l.seed, kubernetes.SeedScheme}, namespace, monitoringName)
		if err != nil {
			t.Fatal(err)
		}
		if watched := strings.Contains(string(encode(objects)), gamma); watched != want {
			t.Errorf("the cache of %s is watched: %t", gamma, watched)
		}
		if deployed := slices.Contains(l.inShoot(t), "StatefulSet/"+idOf(gamma).Name); deployed != want {
			t.Errorf("the cache of %s is deployed: %t", gamma, deployed)
		}
	}
}

// TestTakeoverWithoutManifests checks that no volume and no Service is deleted if the Secret of a
// ManagedResource, which lists the running objects, is gone.
func TestTakeoverWithoutManifests(t *testing.T) {
	for _, name := range []string{cachesName, servicesName} {
		t.Run(name, func(t *testing.T) {
			l := newOriginal(t)
			mr, err := l.actuator.managedResource(t.Context(), namespace, name)
			if err != nil {
				t.Fatal(err)
			}
			gone := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mr.Spec.SecretRefs[0].Name}}
			if err := l.unwatched.Delete(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			claim, services := claimOf(alpha), l.services(t)
			if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				l.reconciled(t)
				now := claimOf(alpha)
				if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil || now.UID != claim.UID {
					t.Errorf("the claim is replaced: %v", err)
				}
				if got := l.services(t); !maps.Equal(got, services) {
					t.Errorf("the Services are %v, were %v", got, services)
				}
			}
			l.assertInShoot(t, "in the end", alpha, beta)
		})
	}
}

// withOriginalTLS acts as if gardener-extension-registry-cache served alpha over HTTPS. It returns
// the CA.
func (l *landscape) withOriginalTLS(t *testing.T) string {
	t.Helper()
	l.configure(t, withTLS(true))
	ex := l.extension(t)
	ex.Status.ProviderStatus.Raw = []byte(strings.Replace(string(ex.Status.ProviderStatus.Raw), "http://", "https://", 1))
	if err := l.seed.Status().Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	shoot, err := l.actuator.cluster(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	const name = "ca-extension-registry-cache"
	config := &secrets.CertificateSecretConfig{Name: name, CommonName: name, CertType: secrets.CACert, Validity: new(730 * 24 * time.Hour)}
	m, err := manager.SecretsManagerForCluster(t.Context(), logr.Discard(), clock.RealClock{}, l.seed, shoot, "extension-registry-cache",
		[]manager.SecretConfigWithOptions{{Config: config, Options: []secretsmanager.GenerateOption{secretsmanager.Persist()}}})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := m.Generate(t.Context(), config, secretsmanager.Persist())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(secret.Data[secrets.DataKeyCertificateCA]))
}

// TestTakeoverTrustsTheOriginal checks that nodes trust the CA of gardener-extension-registry-cache
// after the first reconciliation, although this extension ran before and has an older CA.
func TestTakeoverTrustsTheOriginal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newOriginal(t)
		shoot, err := l.actuator.cluster(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := certificate.Load(t.Context(), logr.Discard(), l.actuator.clock, l.seed, shoot, false); err != nil {
			t.Fatal(err)
		}
		<-time.After(48 * time.Hour)
		ca := l.withOriginalTLS(t)
		l.reconciled(t)
		r, err := recordOf(l.extension(t))
		if err != nil || r.status.CABundle == nil || !strings.Contains(*r.status.CABundle, ca) {
			t.Errorf("the status lacks the CA, error %v", err)
		}
	})
}

// TestTakeoverRemovesTheCA checks that the CA is deleted with the last cache over HTTPS.
func TestTakeoverRemovesTheCA(t *testing.T) {
	l := newOriginal(t)
	l.withOriginalTLS(t)
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	for range 2 {
		l.reconciled(t)
	}
	left := &corev1.SecretList{}
	if err := l.seed.List(t.Context(), left, client.MatchingLabels{secretsmanager.LabelKeyManagerIdentity: "extension-registry-cache"}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range left.Items {
		t.Errorf("left: %s", secret.Name)
	}
}

// TestTakeoverNeedsStatus checks that a state without a providerStatus is never a retry: without
// endpoints, the takeover would not recognize running caches.
func TestTakeoverNeedsStatus(t *testing.T) {
	l := newOriginal(t)
	l.reconciled(t)
	ex := l.extension(t)
	state, err := v1alpha3.DecodeState(ex.Status.State)
	if err != nil {
		t.Fatal(err)
	}
	ex.Annotations, ex.Status.ProviderStatus = map[string]string{"gardener.cloud/timestamp": state.TakenOver}, nil
	if r, err := recordOf(ex); err != nil || r.takingOver || r.takenOverAt == "" {
		t.Errorf("record = %+v, %v", r, err)
	}
}
