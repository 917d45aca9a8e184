package gardenlet

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestStageOf(t *testing.T) {
	const (
		create, reconcile = gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationTypeReconcile
		remove, migrate   = gardencorev1beta1.LastOperationTypeDelete, gardencorev1beta1.LastOperationTypeMigrate
		restore           = gardencorev1beta1.LastOperationTypeRestore
		done, failed      = gardencorev1beta1.LastOperationStateSucceeded, gardencorev1beta1.LastOperationStateError
		processing        = gardencorev1beta1.LastOperationStateProcessing
	)
	if got := StageOf(nil); got != StageAbsent {
		t.Errorf("no shoot: %s", got)
	}
	if got := StageOf(Shoot()); got != StagePresent {
		t.Errorf("without an operation: %s", got)
	}
	for _, tc := range []struct {
		operation gardencorev1beta1.LastOperationType
		state     gardencorev1beta1.LastOperationState
		want      Stage
	}{
		{create, processing, StagePresent}, {create, failed, StagePresent}, {reconcile, done, StagePresent}, {reconcile, failed, StagePresent},
		{migrate, processing, StageMigrating}, {migrate, failed, StageMigrating},
		{restore, processing, StageRestoring}, {restore, failed, StageRestoring}, {restore, done, StagePresent},
		{remove, processing, StageDeleting}, {remove, failed, StageDeleting},
	} {
		shoot := Shoot()
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: tc.operation, State: tc.state}
		if got := StageOf(shoot); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.operation, tc.state, got, tc.want)
		}
	}
}

func TestSecretOfAUser(t *testing.T) {
	g := testGardenlet()
	stored := func(secret *corev1.Secret) *corev1.Secret {
		t.Helper()
		if err := g.StoreSecret(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		found := &corev1.Secret{}
		if err := g.Garden.Get(t.Context(), client.ObjectKey{Namespace: ProjectNamespace, Name: secret.Name}, found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "login", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Data:       map[string][]byte{"password": []byte("old")},
	}
	if found := stored(secret); found.UID != "" || found.Labels["a"] != "b" || found.Immutable != nil || string(found.Data["password"]) != "old" {
		t.Errorf("stored %v", found)
	}
	secret.Data["password"] = []byte("new")
	if found := stored(secret); string(found.Data["password"]) != "new" {
		t.Error("it was not replaced")
	}
}

// secret returns an immutable Secret as a user could store it in the garden.
func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeOpaque, Immutable: ptr.To(true), Data: data}
}

func TestCheckReferences(t *testing.T) {
	g := testGardenlet()
	shoot := WithSecret(WithSecret(Shoot(), "a", "login"), "b", "bundle")
	shoot.Spec.Resources = append(shoot.Spec.Resources, gardencorev1beta1.NamedResourceReference{Name: "c"})
	if err := g.StoreSecret(t.Context(), secret("login", nil)); err != nil {
		t.Fatal(err)
	}
	if err := g.CheckReferences(t.Context(), shoot); err == nil || !strings.HasPrefix(err.Error(), "spec.resources[1]: Secret bundle not found") {
		t.Errorf("error %v", err)
	}
	if err := g.StoreSecret(t.Context(), secret("bundle", nil)); err != nil {
		t.Fatal(err)
	}
	if err := g.CheckReferences(t.Context(), shoot); err != nil {
		t.Error(err)
	}
}
