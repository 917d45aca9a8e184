package gardenlet

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/gardener/gardener/pkg/extensions"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastShoot returns the shoot from the Cluster resource, as extensions see it.
func lastShoot(t *testing.T, g *Gardenlet) *gardencorev1beta1.Shoot {
	t.Helper()
	cluster, err := extensions.GetCluster(t.Context(), g.Seed.Client(), Namespace(g.Name))
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Shoot
}

func TestGardenletRefusesAnotherShoot(t *testing.T) {
	g := testGardenlet()
	if err := g.Reconcile(t.Context(), NewShoot("other")); err == nil || !strings.Contains(err.Error(), "drives only shoot local") {
		t.Errorf("error %v", err)
	}
}

func TestShootsAreDistinct(t *testing.T) {
	first, second := Shoot(), NewShoot("second")
	if first.UID == second.UID || Namespace(first.Name) == Namespace(second.Name) {
		t.Errorf("UIDs %s and %s, namespaces %s and %s", first.UID, second.UID, Namespace(first.Name), Namespace(second.Name))
	}
	if got := Namespace(DefaultShoot); got != "shoot--local--local" {
		t.Errorf("others rely on shoot--local--local, it is %s now", got)
	}
}

// access returns the kubeconfig for extensions and the number of running resource managers.
func access(t *testing.T, g *Gardenlet) (kubeconfig string, managers int32) {
	t.Helper()
	secret, manager := &corev1.Secret{}, &appsv1.Deployment{}
	for name, object := range map[string]client.Object{"gardener": secret, "gardener-resource-manager": manager} {
		if err := g.Seed.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	return string(secret.Data["kubeconfig"]), *manager.Spec.Replicas
}

func TestHibernation(t *testing.T) {
	g := testGardenlet()
	const reachable, unreachable = "https://shoot-control-plane:6443\"", "https://shoot-control-plane:1\n"
	expect := func(when, server string, managers int32) {
		t.Helper()
		kubeconfig, running := access(t, g)
		if !strings.Contains(kubeconfig, server) || running != managers {
			t.Errorf("%s: want server %s and %d resource managers, have %d and %s", when, server, managers, running, kubeconfig)
		}
	}
	deploy := func(shoot *gardencorev1beta1.Shoot) *shootOperation {
		o := prepared(t, g, shoot)
		for _, step := range []func() error{
			func() error { return o.tasks().deployResourceManager(t.Context()) },
			func() error { return o.tasks().deployShootAccess(t.Context()) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		return o
	}
	finish := func(o *shootOperation, hibernated bool) {
		t.Helper()
		if err := o.finish(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := lastShoot(t, g).Status.IsHibernated; got != hibernated {
			t.Errorf("status.hibernated is %v", got)
		}
	}

	finish(deploy(Shoot()), false)
	o := deploy(withHibernation(Shoot(), true))
	expect("while it is being hibernated", reachable, 1)
	if err := o.hibernateControlPlane(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("hibernated", unreachable, 0)
	finish(o, true)
	finish(deploy(withHibernation(Shoot(), true)), true)
	expect("reconciled hibernated", unreachable, 0)
	deploy(markDeleted(withHibernation(Shoot(), true)))
	expect("deleted", reachable, 1)

	g = testGardenlet()
	deploy(withHibernation(Shoot(), true))
	expect("created hibernated", unreachable, 0)
	finish(deploy(withHibernation(Shoot(), false)), false)
	expect("woken up", reachable, 1)
}

// A scenario may skip the flow only if the shoot already has the wanted state.
func TestSettled(t *testing.T) {
	g := testGardenlet()
	shoot := Shoot(Extension("sample", []byte(`{"z":1,"a":[2]}`)))
	expect := func(when string, shoot *gardencorev1beta1.Shoot, want bool) {
		t.Helper()
		if settled, err := g.Settled(t.Context(), shoot); err != nil || settled != want {
			t.Errorf("%s: %v, error %v", when, settled, err)
		}
	}
	expect("never reconciled", shoot, false)
	o := prepared(t, g, shoot)
	expect("begun", shoot, false)
	if err := o.finish(t.Context(), errors.New("it fails")); err != nil {
		t.Fatal(err)
	}
	expect("failed", shoot, false)
	if err := prepared(t, g, shoot).finish(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	expect("succeeded", shoot, true)
	expect("with sorted fields", Shoot(Extension("sample", []byte(`{"a":[2],"z":1}`))), true)
	expect("with another config", Shoot(Extension("sample", []byte(`{"z":2,"a":[2]}`))), false)
	expect("without the extension", Shoot(), false)
	expect("to be hibernated", withHibernation(shoot, true), false)

	preparing := process{newGraph: reconcileGraph, rotation: gardencorev1beta1.RotationPreparing}
	if err := preparedFor(t, g, shoot, preparing).finish(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	expect("CA rotation in progress", shoot, false)
	if err := preparedFor(t, g, shoot, process{rotation: gardencorev1beta1.RotationCompleting}).finish(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	expect("CAs are rotated", shoot, true)
	restored := lastShoot(t, g).Status
	restored.LastOperation.Type = gardencorev1beta1.LastOperationTypeRestore
	if settled(&restored) {
		t.Error("a restored shoot was not reconciled yet")
	}
}

func TestCARotation(t *testing.T) {
	g := testGardenlet()
	rotation := func() *gardencorev1beta1.CARotation {
		return lastShoot(t, g).Status.Credentials.Rotation.CertificateAuthorities
	}
	preparing := process{newGraph: reconcileGraph, rotation: gardencorev1beta1.RotationPreparing}
	o := preparedFor(t, g, Shoot(), preparing)
	if got := rotation(); got.Phase != gardencorev1beta1.RotationPreparing || got.LastInitiationTime == nil {
		t.Errorf("begun as %+v", got)
	}
	if err := o.finish(t.Context(), errors.New("it fails")); err != nil {
		t.Fatal(err)
	}
	begun := *rotation().LastInitiationTime
	o = preparedFor(t, g, Shoot(), preparing)
	if got := rotation(); got.Phase != gardencorev1beta1.RotationPreparing || !got.LastInitiationTime.Equal(&begun) {
		t.Errorf("the retry of a failed flow restarted the phase: %+v", got)
	}
	for _, step := range []struct {
		o    *shootOperation
		want gardencorev1beta1.CredentialsRotationPhase
	}{
		{o, gardencorev1beta1.RotationPrepared},
		{prepared(t, g, Shoot()), gardencorev1beta1.RotationPrepared},
		{preparedFor(t, g, Shoot(), process{rotation: gardencorev1beta1.RotationCompleting}), gardencorev1beta1.RotationCompleted},
	} {
		if err := step.o.finish(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := rotation(); got.Phase != step.want {
			t.Errorf("the phase ended as %+v, want %s", got, step.want)
		}
	}
}

// Restore restores the extension's state from the garden.
func TestMigrationSavesTheState(t *testing.T) {
	g := testGardenlet()
	if err := g.Restore(t.Context(), Shoot()); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("restored what was never migrated: %v", err)
	}
	migrate := process{operation: gardencorev1beta1.LastOperationTypeMigrate}
	restore := process{operation: gardencorev1beta1.LastOperationTypeRestore}
	shoot := Shoot(Extension("sample", []byte(`{}`)))
	state := &runtime.RawExtension{Raw: []byte(`{"kept":true}`)}
	extension := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sample"}}
	seed := g.Seed.Client()
	if err := seed.Create(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	extension.Status.State = state
	if err := seed.Status().Update(t.Context(), extension); err != nil {
		t.Fatal(err)
	}

	if err := preparedFor(t, g, shoot, migrate).tasks().persistShootState(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := seed.Delete(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	o := preparedFor(t, g, shoot, restore)
	if err := o.tasks().deployExtensions(t.Context()); err != nil {
		t.Fatal(err)
	}
	restored := &extensionsv1alpha1.Extension{}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(extension), restored); err != nil {
		t.Fatal(err)
	}
	if got := restored.Annotations["gardener.cloud/operation"]; got != "restore" || restored.Status.State == nil || string(restored.Status.State.Raw) != `{"kept":true}` {
		t.Errorf("operation %q, state %v", got, restored.Status.State)
	}
	if err := o.finish(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := g.Restore(t.Context(), Shoot()); err == nil {
		t.Error("the state is still in the garden")
	}
}

func TestSecretsOfTheGarden(t *testing.T) {
	g := testGardenlet()
	shoot := WithSecret(WithSecret(Shoot(), "credentials", "old"), "credentials", "new")
	if len(shoot.Spec.Resources) != 1 {
		t.Fatalf("resources %v", shoot.Spec.Resources)
	}
	deploy := func() error { return prepared(t, g, shoot).tasks().deployReferencedResources(t.Context()) }
	if err := deploy(); err == nil || !strings.Contains(err.Error(), "object not found") {
		t.Errorf("a missing Secret: %v", err)
	}
	for _, value := range []string{"one", "two"} {
		if err := g.StoreSecret(t.Context(), secret("new", map[string][]byte{"password": []byte(value)})); err != nil {
			t.Fatal(err)
		}
		if err := deploy(); err != nil {
			t.Fatal(err)
		}
	}
	resource := &resourcesv1alpha1.ManagedResource{}
	if err := g.Seed.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "referenced-resources"}, resource); err != nil {
		t.Errorf("the Secret does not reach the seed: %v", err)
	}
}

func withoutWorkers() *gardencorev1beta1.Shoot {
	shoot := Shoot()
	shoot.Spec.Provider.Workers, shoot.Spec.Provider.WorkersSettings = nil, nil
	return shoot
}

func TestWorkerlessShootCanBePrepared(t *testing.T) {
	g := testGardenlet()
	steps := prepared(t, g, withoutWorkers()).tasks()
	if !steps.workerless {
		t.Error("the shoot is not workerless")
	}
}

// TestShootMatchesTheCluster checks that the Shoot gets the IP families and the number of machines
// of the cluster, since extensions may use them.
func TestShootMatchesTheCluster(t *testing.T) {
	const four, six = gardencorev1beta1.IPFamilyIPv4, gardencorev1beta1.IPFamilyIPv6
	for _, tc := range []struct {
		name           string
		families, want []gardencorev1beta1.IPFamily
		machines       int
		services       string
		workers        int32
	}{
		{"nothing is known", nil, []gardencorev1beta1.IPFamily{four}, 0, "10.96.0.0/16", 2},
		{"IPv4", []gardencorev1beta1.IPFamily{four}, []gardencorev1beta1.IPFamily{four}, 1, "10.96.0.0/16", 1},
		{"both", []gardencorev1beta1.IPFamily{four, six}, []gardencorev1beta1.IPFamily{four, six}, 3, "10.96.0.0/16", 3},
		{"IPv6", []gardencorev1beta1.IPFamily{six}, []gardencorev1beta1.IPFamily{six}, 2, "fd00:10:96::/112", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var shoot kubernetes.Interface = fakekubernetes.NewClientSet()
			g := &Gardenlet{Name: DefaultShoot, Shoot: shoot, IPFamilies: tc.families, Machines: make([]Machine, tc.machines)}
			before := Shoot()
			got := g.withDefaults(before)
			if !reflect.DeepEqual(got.Spec.Networking.IPFamilies, tc.want) || *got.Spec.Networking.Services != tc.services ||
				primaryIPFamily(got) != tc.want[0] {
				t.Errorf("networking %+v", got.Spec.Networking)
			}
			if worker := got.Spec.Provider.Workers[0]; worker.Minimum != tc.workers || worker.Maximum != tc.workers {
				t.Errorf("%d to %d machines, want %d", worker.Minimum, worker.Maximum, tc.workers)
			}
			if !reflect.DeepEqual(before, Shoot()) {
				t.Error("the shoot that was passed in has changed")
			}
			if shoot := g.withDefaults(withoutWorkers()); len(shoot.Spec.Provider.Workers) > 0 {
				t.Error("a shoot without workers got some")
			}
		})
	}
	if primaryIPFamily(&gardencorev1beta1.Shoot{}) != four {
		t.Error("a shoot without networking has no family")
	}
}
