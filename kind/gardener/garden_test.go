package gardener

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func openGarden(t *testing.T, path string) client.Client {
	t.Helper()
	registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "sample"}}
	garden, err := OpenGarden(path, registration)
	if err != nil {
		t.Fatal(err)
	}
	return garden
}

func gardenSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-local", Name: "login"},
		Data:       map[string][]byte{"password": {0, 255, '"'}},
	}
}

// TestGardenOutlivesTheProcess reopens the garden after each write, like a process that starts
// after another process was killed.
func TestGardenOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "garden.json")
	ctx, secret := t.Context(), gardenSecret()
	state := &gardencorev1beta1.ShootState{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-local", Name: "local"},
		Spec: gardencorev1beta1.ShootStateSpec{Extensions: []gardencorev1beta1.ExtensionResourceState{
			{Kind: "Extension", State: &runtime.RawExtension{Raw: []byte(`{"caches":[]}`)}},
		}},
	}
	for _, object := range []client.Object{secret, state} {
		if err := openGarden(t, path).Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v: others may read it", info.Mode(), err)
	}

	found, foundState := &corev1.Secret{}, &gardencorev1beta1.ShootState{}
	garden := openGarden(t, path)
	for original, object := range map[client.Object]client.Object{secret: found, state: foundState} {
		if err := garden.Get(ctx, client.ObjectKeyFromObject(original), object); err != nil {
			t.Fatal(err)
		}
	}
	if !equality.Semantic.DeepEqual(found.Data, secret.Data) || !equality.Semantic.DeepEqual(foundState.Spec, state.Spec) {
		t.Errorf("found %v and %v", found, foundState)
	}

	before := found.DeepCopy()
	found.Labels = map[string]string{"a": "b"}
	if err := garden.Patch(ctx, found, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := openGarden(t, path).Get(ctx, client.ObjectKeyFromObject(secret), found); err != nil || found.Labels["a"] != "b" {
		t.Errorf("a patch is lost: %v, error %v", found.Labels, err)
	}
	found.Labels["a"] = "c"
	if err := openGarden(t, path).Update(ctx, found); err != nil {
		t.Fatal(err)
	}
	if err := openGarden(t, path).Get(ctx, client.ObjectKeyFromObject(secret), found); err != nil || found.Labels["a"] != "c" {
		t.Errorf("an update is lost: %v, error %v", found.Labels, err)
	}
	if err := openGarden(t, path).Delete(ctx, found); err != nil {
		t.Fatal(err)
	}
	if err := openGarden(t, path).Get(ctx, client.ObjectKeyFromObject(secret), found); !apierrors.IsNotFound(err) {
		t.Errorf("a deletion is lost: %v", err)
	}
	if err := openGarden(t, path).DeleteAllOf(ctx, state, client.InNamespace("garden-local")); err != nil {
		t.Fatal(err)
	}
	if err := openGarden(t, path).Get(ctx, client.ObjectKeyFromObject(state), foundState); !apierrors.IsNotFound(err) {
		t.Errorf("a deletion of all is lost: %v", err)
	}
}

// TestGardenFileHoldsNothingElse checks that objects passed to OpenGarden are not in the file.
func TestGardenFileHoldsNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "garden.json")
	if err := openGarden(t, path).Create(t.Context(), gardenSecret()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("ControllerRegistration")) || !bytes.Contains(data, []byte(`"kind":"Secret"`)) {
		t.Errorf("the file is %s, error %v", data, err)
	}
}
