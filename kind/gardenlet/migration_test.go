package gardenlet

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// inAnotherProcess returns a Gardenlet that shares only the clusters and the garden's file with g.
func inAnotherProcess(ctx context.Context, t *testing.T, g *Gardenlet, path string) *Gardenlet {
	t.Helper()
	registrations := &gardencorev1beta1.ControllerRegistrationList{}
	if err := g.Garden.List(ctx, registrations); err != nil {
		t.Fatal(err)
	}
	registrations.Items[0].ResourceVersion = ""
	garden, err := gardener.OpenGarden(path, &registrations.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	another := *g
	another.Garden = garden
	return &another
}

// One process migrates the shoot, or dies during the migration. Another process restores the shoot.
func TestMigrationAcrossProcesses(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "garden.json")
	g := inAnotherProcess(ctx, t, testGardenlet(), path)
	expect := func(when string, want Stage) *gardencorev1beta1.Shoot {
		t.Helper()
		g = inAnotherProcess(ctx, t, g, path)
		shoot, stage, err := g.Find(ctx)
		if err != nil || stage != want {
			t.Fatalf("%s: stage %s, error %v, want %s", when, stage, err, want)
		}
		return shoot
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if shoot := expect("before", StageAbsent); shoot != nil {
		t.Errorf("found %v", shoot)
	}
	check(prepared(t, g, Shoot(Extension("sample", []byte(`{"a":1}`)))).finish(ctx, nil))
	shoot := expect("created", StagePresent)
	extension := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sample"}}
	extension.Spec.Type = "sample"
	check(g.Seed.Client().Create(ctx, extension))
	extension.Status.State = &runtime.RawExtension{Raw: []byte(`{"saved":true}`)}
	check(g.Seed.Client().Status().Update(ctx, extension))
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ca", Labels: map[string]string{"persist": "true"}},
		Data: map[string][]byte{"ca.crt": []byte("a certificate")}}
	check(g.Seed.Client().Create(ctx, ca))

	check(g.StoreForMigration(ctx, shoot))
	expect("about to leave", StagePresent)
	o := preparedFor(t, g, shoot, process{operation: gardencorev1beta1.LastOperationTypeMigrate})
	check(o.persistShootState(ctx))
	shoot = expect("its state is saved", StageMigrating)
	check(preparedFor(t, g, shoot, process{operation: gardencorev1beta1.LastOperationTypeMigrate}).deleteCluster(ctx))

	shoot = expect("migrated", StageMigrated)
	if got := string(shoot.Spec.Extensions[0].ProviderConfig.Raw); got != `{"a":1}` {
		t.Errorf("the shoot's config is lost: %s", got)
	}
	o = preparedFor(t, g, shoot, process{operation: gardencorev1beta1.LastOperationTypeRestore})
	states := o.Shoot.GetShootState().Spec.Extensions
	if len(states) != 1 || !strings.Contains(string(states[0].State.Raw), "saved") {
		t.Errorf("the state of the extension is lost: %+v", states)
	}
	check(client.IgnoreNotFound(g.Seed.Client().Delete(ctx, ca)))
	check(o.tasks().restoreSecrets(ctx))
	check(g.Seed.Client().Get(ctx, client.ObjectKeyFromObject(ca), ca))
	if got := string(ca.Data["ca.crt"]); got != "a certificate" {
		t.Errorf("the restored CA is %q", got)
	}
	check(o.finish(ctx, errors.New("it fails")))
	shoot = expect("not restored", StageRestoring)
	check(preparedFor(t, g, shoot, process{operation: gardencorev1beta1.LastOperationTypeRestore}).finish(ctx, nil))
	expect("restored", StagePresent)
	check(g.DeleteStored(ctx))
	check(g.DeleteStored(ctx)) // nothing is left
	if err := g.Garden.Get(ctx, client.ObjectKeyFromObject(Shoot()), &gardencorev1beta1.Shoot{}); !apierrors.IsNotFound(err) {
		t.Errorf("the shoot is still in the garden: %v", err)
	}
}

// TestStoreForMigrationRemovesEarlierState checks that the state of an earlier migration cannot be
// restored.
func TestStoreForMigrationRemovesEarlierState(t *testing.T) {
	g := testGardenlet()
	state := &gardencorev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: ProjectNamespace, Name: DefaultShoot}}
	for _, object := range []client.Object{state, Shoot()} {
		if err := g.Garden.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.StoreForMigration(t.Context(), Shoot()); err != nil {
		t.Fatal(err)
	}
	if err := g.Garden.Get(t.Context(), client.ObjectKeyFromObject(state), state); !apierrors.IsNotFound(err) {
		t.Errorf("the old state is still there: %v", err)
	}
	if _, stage, err := g.Find(t.Context()); err != nil || stage != StageAbsent {
		t.Errorf("stage %s, error %v", stage, err)
	}
}
