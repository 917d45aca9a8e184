package gardenlet

import (
	"context"
	"errors"
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

// inAnotherProcess returns a Gardenlet that shares only the clusters with g.
func inAnotherProcess(ctx context.Context, t *testing.T, g *Gardenlet) *Gardenlet {
	t.Helper()
	registrations := &gardencorev1beta1.ControllerRegistrationList{}
	if err := g.Garden.List(ctx, registrations); err != nil {
		t.Fatal(err)
	}
	registrations.Items[0].ResourceVersion = ""
	another := *g
	another.Garden = gardener.NewGarden(&registrations.Items[0])
	if err := another.Recall(ctx); err != nil {
		t.Fatal(err)
	}
	return &another
}

// TestMigrationIsInterrupted: a migration and a restoration continue in another process, as long as
// the seed has the extension.
func TestMigrationIsInterrupted(t *testing.T) {
	ctx, g := t.Context(), testGardenlet()
	migrate := process{operation: gardencorev1beta1.LastOperationTypeMigrate}
	restore := process{operation: gardencorev1beta1.LastOperationTypeRestore}
	expect := func(when string, want Stage) *gardencorev1beta1.Shoot {
		t.Helper()
		g = inAnotherProcess(ctx, t, g)
		shoot, err := g.Find(ctx)
		if stage := StageOf(shoot); err != nil || stage != want {
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

	check(preparedFor(t, g, shoot, migrate).finish(ctx, errors.New("it fails")))
	shoot = expect("not migrated", StageMigrating)
	o := preparedFor(t, g, shoot, migrate)
	check(o.persistShootState(ctx))
	check(o.deleteCluster(ctx))

	o = preparedFor(t, g, shoot, restore)
	if got := string(o.Shoot.GetInfo().Spec.Extensions[0].ProviderConfig.Raw); got != `{"a":1}` {
		t.Errorf("the shoot's config is lost: %s", got)
	}
	check(client.IgnoreNotFound(g.Seed.Client().Delete(ctx, ca)))
	check(o.tasks().restoreSecrets(ctx))
	check(g.Seed.Client().Get(ctx, client.ObjectKeyFromObject(ca), ca))
	if got := string(ca.Data["ca.crt"]); got != "a certificate" {
		t.Errorf("the restored CA is %q", got)
	}
	check(o.finish(ctx, errors.New("it fails")))
	shoot = expect("not restored", StageRestoring)
	o = preparedFor(t, g, shoot, process{}) // `testbed up` continues it as well
	if got := o.Shoot.GetInfo().Status.LastOperation.Type; got != gardencorev1beta1.LastOperationTypeRestore {
		t.Errorf("a reconciliation continues the restoration as %s", got)
	}
	states := o.Shoot.GetShootState().Spec.Extensions
	if len(states) != 1 || !strings.Contains(string(states[0].State.Raw), "saved") {
		t.Errorf("the state of the extension is lost: %+v", states)
	}
	check(o.finish(ctx, nil))
	expect("restored", StagePresent)
}

// TestReconciliationEndsAMigration: after an interrupted migration, `testbed up` reconciles.
func TestReconciliationEndsAMigration(t *testing.T) {
	g := testGardenlet()
	preparedFor(t, g, Shoot(), process{operation: gardencorev1beta1.LastOperationTypeMigrate})
	if err := prepared(t, g, Shoot()).finish(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if last := lastShoot(t, g).Status.LastOperation; last.Type != gardencorev1beta1.LastOperationTypeReconcile || last.Progress != 100 {
		t.Errorf("the last operation is %+v", last)
	}
}

// TestRecallSecrets: another process finds the Secrets to which the shoot refers.
func TestRecallSecrets(t *testing.T) {
	ctx, g := t.Context(), testGardenlet()
	shoot := WithSecret(WithSecret(Shoot(), "a", "login"), "b", "pending")
	shoot.Spec.Resources = append(shoot.Spec.Resources, gardencorev1beta1.NamedResourceReference{Name: "c"})
	prepared(t, g, shoot)
	copied := secret("ref-login", map[string][]byte{"password": []byte("hunter2")})
	copied.Namespace, copied.Annotations = namespace, map[string]string{"of": "the copy"}
	if err := g.Seed.Client().Create(ctx, copied); err != nil {
		t.Fatal(err)
	}
	g = inAnotherProcess(ctx, t, g)
	found := &corev1.Secret{}
	if err := g.Garden.Get(ctx, client.ObjectKey{Namespace: ProjectNamespace, Name: "login"}, found); err != nil {
		t.Fatal(err)
	}
	if string(found.Data["password"]) != "hunter2" || found.Type != corev1.SecretTypeOpaque || !*found.Immutable || found.Annotations != nil {
		t.Errorf("recalled %+v", found)
	}
	if err := g.Garden.Get(ctx, client.ObjectKey{Namespace: ProjectNamespace, Name: "pending"}, found); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret that is not on the seed: %v", err)
	}
}
