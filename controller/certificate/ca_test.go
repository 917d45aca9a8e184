package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/util/secret/manager"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

const namespace = "shoot--local--local"

var (
	alpha = v1alpha3.RegistryCache{Upstream: "alpha.upstream.test"}
	ip    = net.ParseIP("10.0.0.7")
)

// shoot returns a shoot in the phase of a CA rotation. With phase "" there is no rotation.
func shoot(phase gardencorev1beta1.CredentialsRotationPhase, initiated time.Time) *extensionscontroller.Cluster {
	s := &gardencorev1beta1.Shoot{}
	if phase != "" {
		s.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase, LastInitiationTime: &metav1.Time{Time: initiated}},
		}}
	}
	return &extensionscontroller.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Shoot: s}
}

// reconcile calls Load, Issue and Prune, as a reconciliation does. It returns the CA bundle for
// nodes and the cache's certificate.
func reconcile(t *testing.T, seed client.Client, now clock.Clock, cluster *extensionscontroller.Cluster) ([]byte, *cache.Certificate) {
	t.Helper()
	ca, err := Load(t.Context(), logr.Discard(), now, seed, cluster, false)
	if err != nil {
		t.Fatal(err)
	}
	id := v1alpha3.Identify([]v1alpha3.RegistryCache{alpha}, nil)[0]
	id.Address = ip.String()
	issued, err := ca.Issue(t.Context(), &alpha, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ca.Bundle, issued
}

// trusts reports whether a node with the bundle accepts the certificate for the address.
func trusts(t *testing.T, bundle []byte, issued *cache.Certificate, address string) bool {
	t.Helper()
	pair, err := tls.X509KeyPair(issued.Certificate, issued.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		t.Fatalf("no certificate in %q", bundle)
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: address})
	return err == nil
}

func TestIssue(t *testing.T) {
	seed := fake.NewFakeClient()
	bundle, issued := reconcile(t, seed, clock.RealClock{}, shoot("", time.Time{}))
	for _, address := range []string{"10.0.0.7", "registry-alpha-upstream-test.kube-system.svc.cluster.local"} {
		if !trusts(t, bundle, issued, address) {
			t.Errorf("the certificate is not valid for %s", address)
		}
	}
	if trusts(t, bundle, issued, "10.0.0.8") {
		t.Error("the certificate is valid for an address that it should not have")
	}
	if block, _ := pem.Decode(issued.PrivateKey); block == nil || block.Type != "EC PRIVATE KEY" {
		t.Error("the key is not for ECDSA, so each handshake takes long")
	}
	again, same := reconcile(t, seed, clock.RealClock{}, shoot("", time.Time{}))
	if string(again) != string(bundle) || string(same.Certificate) != string(issued.Certificate) {
		t.Error("a second reconciliation issued another certificate")
	}
}

// TestIssueWithoutAddress: in a hibernated shoot, the address of a cache may be unknown.
func TestIssueWithoutAddress(t *testing.T) {
	ca, err := Load(t.Context(), logr.Discard(), clock.RealClock{}, fake.NewFakeClient(), shoot("", time.Time{}), false)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := ca.Issue(t.Context(), &alpha, v1alpha3.Identify([]v1alpha3.RegistryCache{alpha}, nil)[0])
	if err != nil {
		t.Fatal(err)
	}
	if !trusts(t, ca.Bundle, issued, "registry-alpha-upstream-test.kube-system.svc") {
		t.Error("the certificate is not valid for the Service")
	}
}

// TestSecretNames: gardener-extension-registry-cache uses Secrets with the same names and identity.
func TestSecretNames(t *testing.T) {
	seed := fake.NewFakeClient()
	reconcile(t, seed, clock.RealClock{}, shoot("", time.Time{}))
	var names []string
	for _, secret := range secretsIn(t, seed) {
		if secret.Labels["manager-identity"] != "extension-registry-cache" {
			t.Errorf("%s has the labels %v", secret.Name, secret.Labels)
		}
		names = append(names, secret.Name)
	}
	slices.Sort(names)
	want := []string{"ca-extension-registry-cache-", "ca-extension-registry-cache-bundle-", "registry-alpha-upstream-test-tls-"}
	if !slices.EqualFunc(names, want, strings.HasPrefix) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestTakeover: nodes that trust the CA of gardener-extension-registry-cache trust the certificates
// that this extension issues instead.
func TestTakeover(t *testing.T) {
	seed, cluster := fake.NewFakeClient(), shoot("", time.Time{})
	theirs := []manager.SecretConfigWithOptions{{
		Config: &secrets.CertificateSecretConfig{Name: caName, CommonName: caName, CertType: secrets.CACert, Validity: ptr.To(730 * 24 * time.Hour)},
	}}
	m, err := manager.SecretsManagerForCluster(t.Context(), logr.Discard(), clock.RealClock{}, seed, cluster, identity, theirs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), theirs[0].Config, secretsmanager.Persist()); err != nil {
		t.Fatal(err)
	}
	bundle, _ := m.Get(caName)
	for range 2 {
		if _, issued := reconcile(t, seed, clock.RealClock{}, cluster); !trusts(t, bundle.Data[secrets.DataKeyCertificateBundle], issued, ip.String()) {
			t.Error("nodes do not trust the new certificate")
		}
	}
}

func secretsIn(t *testing.T, seed client.Client) []corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	if err := seed.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
