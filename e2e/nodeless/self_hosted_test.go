//go:build e2e

package nodeless

import (
	"context"
	"fmt"
	"maps"
	"time"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	sharedcomponent "github.com/gardener/gardener/pkg/component/shared"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/utils/flow"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/osextension"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// selfHosted proves that the extension works for a self-hosted shoot: the namespace of the control
// plane is kube-system of the shoot's own cluster, and the Cluster has no Seed. The scenario writes
// what gardenlet v1.150.0 writes for such a shoot, in its order. It adds what that version does not
// write yet: the kubeconfig for extensions, and the Extension, whose lifecycle it ignores.
func selfHosted() rig.Scenario {
	var others map[types.UID]string
	alpha, beta := cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta) // beta's cache has a certificate
	return rig.New("self-hosted",
		rig.Prove("kube-system is the namespace of a shoot without a Seed", func(ctx context.Context, p *rig.Run) {
			createSelfHosted(ctx, p)
			others = inKubeSystem(ctx, p)
		}),

		rig.Prove("without an Extension, an OperatingSystemConfig is accepted", func(ctx context.Context, p *rig.Run) {
			proveUnit(ctx, p)
			p.Evidence("accepted without an Extension")
		}),

		rig.Prove("alpha and beta are cached", func(ctx context.Context, p *rig.Run) {
			enable(ctx, p, alpha, beta)
			p.Evidence("alpha and beta in kube-system, Cluster without spec.seed")
		}),

		rig.Prove("a change of alpha does not change beta", func(ctx context.Context, p *rig.Run) {
			before := generations(ctx, p)
			alpha.GarbageCollection = &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: time.Hour}}
			enable(ctx, p, alpha, beta)
			p.Await(ctx, "alpha's StatefulSet has changed", podsTimeout, func(ctx context.Context) (bool, string, error) {
				after := generations(ctx, p)
				if after[rig.Beta] != before[rig.Beta] {
					p.Fatalf("beta's StatefulSet has changed: %v, before %v", after, before)
				}
				return after[rig.Alpha] > before[rig.Alpha], fmt.Sprint(after), nil
			})
		}),

		rig.Prove("alpha is removed after a clean-up of the nodes", func(ctx context.Context, p *rig.Run) {
			before := generations(ctx, p)
			daemons := p.Record(ctx, p.Session.Shoot, appsv1.SchemeGroupVersion.WithResource("daemonsets"), metav1.NamespaceSystem)
			enable(ctx, p, beta)
			if len(cleanersIn(ctx, p, p.Session.Shoot, daemons)) == 0 {
				p.Fatalf("there was no cleaner")
			}
			if after, want := generations(ctx, p), map[string]int64{rig.Beta: before[rig.Beta]}; !maps.Equal(after, want) {
				p.Fatalf("generations of StatefulSets: %v, want %v", after, want)
			}
			p.Evidence("alpha removed, beta unchanged")
		}),

		rig.Prove("the extension is disabled: nothing of it is left, and the rest of kube-system is", func(ctx context.Context, p *rig.Run) {
			enable(ctx, p)
			proveNothingLeft(ctx, p)
			after := inKubeSystem(ctx, p)
			for id, name := range others {
				if after[id] == "" {
					p.Errorf("%s is gone", name)
				}
			}
			if p.Failed() {
				p.FailNow()
			}
			p.Evidence("disabled; %d other objects of kube-system are still there", len(others))
		}),
	)
}

// createSelfHosted writes the Cluster, the labels of kube-system and the kubeconfig for extensions,
// and starts gardener-resource-manager. All of it is removed when the scenario ends.
func createSelfHosted(ctx context.Context, p *rig.Run) {
	p.Helper()
	seed, driver := p.Session.Seed, p.Session.Testbed.Gardenlet
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	label := func(ctx context.Context, role, uses string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s,%q:%s}}}`,
			v1beta1constants.GardenRole, role, v1beta1constants.LabelExtensionPrefix+v1alpha3.ExtensionType, uses)
		return seed.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch))
	}
	p.Afterwards(ctx, func(ctx context.Context) error { return label(ctx, "null", "null") })
	p.Check(label(ctx, `"shoot"`, `"true"`))

	p.Afterwards(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(seed.Delete(ctx, &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}))
	})
	shoot, err := syncSelfHosted(ctx, p)
	p.Check(err)
	if got := v1beta1helper.ControlPlaneNamespaceForShoot(shoot); got != metav1.NamespaceSystem {
		p.Fatalf("Gardener expects the control plane in namespace %s", got)
	}

	access := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: v1beta1constants.SecretNameGardener},
		Data:       map[string][]byte{kubernetes.KubeConfig: driver.ShootKubeconfig},
	}
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(seed.Delete(ctx, access)) })
	p.Check(seed.Create(ctx, access))

	manager := gardener.ResourceManager{Namespace: metav1.NamespaceSystem, Image: driver.ResourceManagerImage, TargetKubeconfig: driver.ShootKubeconfig}
	p.Afterwards(ctx, func(ctx context.Context) error { return manager.Destroy(ctx, seed) })
	p.Check(manager.Deploy(ctx, seed))
	p.Check(manager.Wait(ctx, seed))
	p.Afterwards(ctx, func(ctx context.Context) error { return reconcileSelfHosted(ctx, p) }) // after a failed step
}

// syncSelfHosted writes the Cluster as gardenlet does, and returns the Shoot with these caches.
func syncSelfHosted(ctx context.Context, p *rig.Run, caches ...v1alpha3.RegistryCache) (*gardencorev1beta1.Shoot, error) {
	shoot, err := p.Session.ShootWith(nil, caches...)
	if err != nil {
		return nil, err
	}
	shoot.Spec.SeedName, shoot.Spec.Kubernetes.Version = nil, p.Session.Testbed.Gardenlet.Shoot.Version()
	shoot.Spec.Provider.Workers[0].ControlPlane = &gardencorev1beta1.WorkerControlPlane{}
	shoot.Status.TechnicalID, shoot.Status.UID = gardenlet.Namespace(shoot.Name), shoot.UID
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateProcessing,
	}
	return shoot, extensions.SyncClusterResourceToSeed(ctx, p.Session.Seed, metav1.NamespaceSystem, shoot, &gardencorev1beta1.CloudProfile{}, nil)
}

// reconcileSelfHosted writes or, without caches, deletes the Extension as gardenlet does, and waits
// for it.
func reconcileSelfHosted(ctx context.Context, p *rig.Run, caches ...v1alpha3.RegistryCache) error {
	shoot, err := syncSelfHosted(ctx, p, caches...)
	if err != nil {
		return err
	}
	driver := p.Session.Testbed.Gardenlet
	component, err := sharedcomponent.NewExtension(ctx, driver.Log, driver.Garden, p.Session.Seed, metav1.NamespaceSystem,
		extensionsv1alpha1.ExtensionClassShoot, shoot.Spec.Extensions, false)
	if err != nil {
		return err
	}
	defer gardener.RequeueDeletions(ctx, p.Session.Seed, metav1.NamespaceSystem)()
	return flow.Sequential(component.Deploy, component.Wait, component.DeleteStaleResources, component.WaitCleanupStaleResources)(ctx)
}

// enable calls reconcileSelfHosted, and proves that exactly these caches exist and nodes get their
// endpoints.
func enable(ctx context.Context, p *rig.Run, caches ...v1alpha3.RegistryCache) {
	p.Helper()
	p.Check(reconcileSelfHosted(ctx, p, caches...))
	awaitPods(ctx, p, len(caches))
	proveUnit(ctx, p, rig.Upstreams(caches)...)
}

// proveUnit proves that an OperatingSystemConfig gets a unit for the caches of exactly these
// upstreams, or no unit without upstreams.
func proveUnit(ctx context.Context, p *rig.Run, hosts ...string) {
	p.Helper()
	config := &extensionsv1alpha1.OperatingSystemConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "e2e-self-hosted"},
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: osextension.Type}, Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
		},
	}
	p.Check(p.Session.Seed.Create(ctx, config, client.DryRunAll))
	endpoints := map[string]string{}
	unit := extensionswebhook.UnitWithName(config.Spec.Units, nodeconfig.UnitName)
	if unit != nil {
		registries, err := nodeconfig.ParseUnit(*unit.Content)
		p.Check(err)
		for _, registry := range registries {
			endpoints[registry.Upstream] = registry.Endpoint
		}
	}
	if want := wantedEndpoints(ctx, p, hosts...); !maps.Equal(endpoints, want) || (unit != nil) != (len(hosts) > 0) {
		p.Fatalf("the unit has the endpoints %v, want %v; units: %v", endpoints, want, config.Spec.Units)
	}
}

// generations maps the upstreams of all caches to the generations of their StatefulSets.
func generations(ctx context.Context, p *rig.Run) map[string]int64 {
	p.Helper()
	sets := &appsv1.StatefulSetList{}
	p.Check(p.Session.Shoot.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}))
	found := map[string]int64{}
	for _, set := range sets.Items {
		found[set.Labels[v1alpha3.LabelUpstreamHost]] = set.Generation
	}
	return found
}

// proveNothingLeft proves that kube-system has no cache, no ManagedResource and no certificate of
// the extension.
func proveNothingLeft(ctx context.Context, p *rig.Run) {
	p.Helper()
	p.NothingDeployed(ctx)
	resources, certificates := &resourcesv1alpha1.ManagedResourceList{}, &corev1.SecretList{}
	p.Check(p.Session.Seed.List(ctx, resources, client.InNamespace(metav1.NamespaceSystem)))
	p.Check(p.Session.Seed.List(ctx, certificates, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{secretsmanager.LabelKeyManagerIdentity}))
	for _, resource := range resources.Items {
		p.Errorf("ManagedResource %s is left", resource.Name)
	}
	for _, certificate := range certificates.Items { // not their content
		p.Errorf("Secret %s is left", certificate.Name)
	}
	if p.Failed() {
		p.FailNow()
	}
}

// inKubeSystem returns the Secrets, ConfigMaps and Services of kube-system.
func inKubeSystem(ctx context.Context, p *rig.Run) map[types.UID]string {
	p.Helper()
	found := map[types.UID]string{}
	for _, kind := range []string{"Secret", "ConfigMap", "Service"} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind + "List"}}
		p.Check(p.Session.Seed.List(ctx, list, client.InNamespace(metav1.NamespaceSystem)))
		for _, object := range list.Items {
			found[object.UID] = kind + " " + object.Name
		}
	}
	return found
}
