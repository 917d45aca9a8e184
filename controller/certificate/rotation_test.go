package certificate

import (
	"slices"
	"testing"
	"time"

	"github.com/gardener/gardener/extensions/pkg/util/secret/manager"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestRotation steps through the phases that gardenlet sets. A node has the previous or the current
// bundle. With either, the node must trust the current certificate, or pulls bypass the cache.
func TestRotation(t *testing.T) {
	seed := fake.NewFakeClient()
	started := time.Now()
	before, first := reconcile(t, seed, clock.RealClock{}, shoot("", time.Time{}))
	for _, phase := range []gardencorev1beta1.CredentialsRotationPhase{
		gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationPrepared,
		gardencorev1beta1.RotationCompleting, gardencorev1beta1.RotationCompleted,
	} {
		bundle, issued := reconcile(t, seed, clock.RealClock{}, shoot(phase, started))
		if !trusts(t, before, issued, ip.String()) || !trusts(t, bundle, issued, ip.String()) {
			t.Errorf("%s: trusted with the previous bundle %t, with the current one %t", phase,
				trusts(t, before, issued, ip.String()), trusts(t, bundle, issued, ip.String()))
		}
		prepared := phase == gardencorev1beta1.RotationPreparing || phase == gardencorev1beta1.RotationPrepared
		if same := string(issued.Certificate) == string(first.Certificate); same != prepared {
			t.Errorf("%s: the certificate is unchanged since before the rotation: %t", phase, same)
		}
		if !prepared && trusts(t, bundle, first, ip.String()) {
			t.Errorf("%s: the old CA is still trusted", phase)
		}
		before = bundle
	}
}

// TestOldCA: the CA of gardener-extension-registry-cache, which expires earlier, signs for a day.
func TestOldCA(t *testing.T) {
	seed := fake.NewFakeClient()
	original := &secrets.CertificateSecretConfig{Name: caName, CertType: secrets.CACert, Validity: ptr.To(730 * 24 * time.Hour)}
	m, err := manager.SecretsManagerForCluster(t.Context(), logr.Discard(), clock.RealClock{}, seed, shoot("", time.Time{}), identity,
		[]manager.SecretConfigWithOptions{{Config: original}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), original, secretsmanager.Persist()); err != nil {
		t.Fatal(err)
	}
	old, _ := m.Get(caName)
	before := old.Data[secrets.DataKeyCertificateBundle]
	for _, after := range []time.Duration{0, keepOld - time.Hour, keepOld + time.Hour} {
		bundle, issued := reconcile(t, seed, clocktesting.NewFakeClock(time.Now().Add(after)), shoot("", time.Time{}))
		if !trusts(t, before, issued, ip.String()) || !trusts(t, bundle, issued, ip.String()) {
			t.Errorf("after %s, nodes do not trust the certificate", after)
		}
		if signs := trusts(t, old.Data[secrets.DataKeyCertificateBundle], issued, ip.String()); signs != (after < keepOld) {
			t.Errorf("after %s, the CA of the original signs: %t", after, signs)
		}
		before = bundle
	}
}

// TestRenewal: a certificate is replaced after a year, when half of its validity remains.
func TestRenewal(t *testing.T) {
	seed := fake.NewFakeClient()
	_, issued := reconcile(t, seed, clock.RealClock{}, shoot("", time.Time{}))
	for name, test := range map[string]struct {
		after time.Duration
		renew bool
	}{"early": {364 * 24 * time.Hour, false}, "late": {366 * 24 * time.Hour, true}} {
		_, later := reconcile(t, seed, clocktesting.NewFakeClock(time.Now().Add(test.after)), shoot("", time.Time{}))
		if renewed := string(later.Certificate) != string(issued.Certificate); renewed != test.renew {
			t.Errorf("%s: renewed %t", name, renewed)
		}
		issued = later
	}
}

func TestMigrationKeepsTheCertificate(t *testing.T) {
	seed := fake.NewFakeClient()
	_, issued := reconcile(t, seed, clock.RealClock{}, shoot("", time.Time{}))
	next := fake.NewFakeClient()
	for _, secret := range secretsIn(t, seed) {
		if secret.Labels["persist"] == "true" { // gardenlet copies these
			secret.ResourceVersion = ""
			if err := next.Create(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, same := reconcile(t, next, clock.RealClock{}, shoot("", time.Time{}))
	if string(same.Certificate) != string(issued.Certificate) {
		t.Error("the next seed issued another certificate")
	}
}

func TestRemove(t *testing.T) {
	gardenlets := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ca", Labels: map[string]string{
		"managed-by": "secrets-manager", "manager-identity": "gardenlet", "name": "ca",
	}}}
	seed := fake.NewFakeClient(gardenlets)
	reconcile(t, seed, clock.RealClock{}, shoot("", time.Time{}))
	for range 2 {
		if err := Remove(t.Context(), logr.Discard(), clock.RealClock{}, seed, namespace); err != nil {
			t.Fatal(err)
		}
		left := slices.Collect(func(yield func(string) bool) {
			for _, secret := range secretsIn(t, seed) {
				yield(secret.Name)
			}
		})
		if !slices.Equal(left, []string{"ca"}) {
			t.Errorf("remaining Secrets: %v", left)
		}
	}
}
