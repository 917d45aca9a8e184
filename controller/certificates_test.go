package controller

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func withTLS(on bool) func(*v1alpha3.RegistryConfig) {
	return func(c *v1alpha3.RegistryConfig) { c.Caches[0].HTTP = &v1alpha3.HTTP{TLS: on} }
}

// served returns the certificate that alpha is deployed with, nil if none.
func (l *landscape) served(t *testing.T) *x509.Certificate {
	t.Helper()
	objects, err := managedresources.GetObjects(t.Context(), l.seed, namespace, cachesName)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		secret, ok := object.(*corev1.Secret)
		if !ok || len(secret.Data["tls.crt"]) == 0 {
			continue
		}
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf
	}
	return nil
}

// assertTrusted checks that a node that only knows the status trusts the cache of alpha at its
// endpoint.
func (l *landscape) assertTrusted(t *testing.T) {
	t.Helper()
	r, err := recordOf(l.extension(t))
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := url.Parse(r.status.Caches[0].Endpoint)
	if err != nil || endpoint.Scheme != "https" {
		t.Fatalf("endpoint = %s, %v", endpoint, err)
	}
	pool := x509.NewCertPool()
	if r.status.CABundle == nil || !pool.AppendCertsFromPEM([]byte(*r.status.CABundle)) {
		t.Fatalf("caBundle = %v", r.status.CABundle)
	}
	leaf := l.served(t)
	if leaf == nil {
		t.Fatal("the cache has no certificate")
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: endpoint.Hostname()}); err != nil {
		t.Error(err)
	}
}

// TestTLS checks a new cache, whose cluster IP is known only after it was deployed once.
func TestTLS(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	l.configure(t, withTLS(true))
	w := l.tap()
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	l.assertTrusted(t)
	w.requests = nil
	if err := l.reconcile(t); err != nil || len(w.writes()) > 0 {
		t.Errorf("a reconciliation without a change: error %v, writes %q", err, w.writes())
	}
}

// TestTLSFlips turns TLS off and on. The status must match the deployed cache each time.
func TestTLSFlips(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	for _, on := range []bool{true, false, true} {
		l.configure(t, withTLS(on))
		if err := l.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if on {
			l.assertTrusted(t)
			continue
		}
		if got := l.recorded(t); got[0] != "status with CA false" || got[1] != alpha+" by http" {
			t.Errorf("status is %q", got)
		}
		if l.served(t) != nil || strings.Contains(l.summary(t), "certificate ") {
			t.Errorf("there is still a certificate:\n%s", l.summary(t))
		}
	}
}

// TestTLSKeepsRunningCache checks a Service that is deleted and recreated with another cluster IP.
func TestTLSKeepsRunningCache(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	l.configure(t, withTLS(true))
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: v1alpha3.Name(alpha)}
	set, service := &appsv1.StatefulSet{}, &corev1.Service{}
	for _, object := range []client.Object{set, service} {
		if err := l.shoot.Get(t.Context(), key, object); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.shoot.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	l.resync(t, cachesName)
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	l.assertTrusted(t)
	now := &appsv1.StatefulSet{}
	if err := l.shoot.Get(t.Context(), key, now); err != nil || now.UID != set.UID {
		t.Errorf("the StatefulSet was replaced: %v", err)
	}
	if address := l.served(t).IPAddresses[0]; address.Equal(net.ParseIP(service.Spec.ClusterIP)) {
		t.Errorf("the certificate is still for %s", address)
	}
}

// TestRotation checks that nodes trust the cache in each phase of a CA rotation.
func TestRotation(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	l.configure(t, withTLS(true))
	for _, phase := range []gardencorev1beta1.CredentialsRotationPhase{
		"", gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationCompleting, gardencorev1beta1.RotationCompleted,
	} {
		if phase != "" {
			l.changeShoot(t, func(shoot *gardencorev1beta1.Shoot) {
				shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
					CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase, LastInitiationTime: &metav1.Time{Time: time.Unix(1, 0)}},
				}}
			})
		}
		if err := l.reconcile(t); err != nil {
			t.Fatal(err)
		}
		l.assertTrusted(t)
	}
}

// changeShoot changes the Cluster, as gardenlet does.
func (l *landscape) changeShoot(t *testing.T, changes ...func(*gardencorev1beta1.Shoot)) {
	t.Helper()
	now := &extensionsv1alpha1.Cluster{}
	if err := l.seed.Get(t.Context(), client.ObjectKey{Name: namespace}, now); err != nil {
		t.Fatal(err)
	}
	now.Spec = cluster(changes...).Spec
	if err := l.seed.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := l.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}
