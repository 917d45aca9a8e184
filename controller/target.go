package controller

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/reference"
)

// target is what one reconciliation is about. Once it is there, nothing is wrong with what the user wrote.
type target struct {
	ex      *extensionsv1alpha1.Extension
	cluster *extensionscontroller.Cluster
	// before is what earlier reconciliations left behind.
	before record
	// config is the providerConfig with defaults; sizes that volumes cannot grow to are replaced by theirs.
	config *v1alpha3.RegistryConfig
	// secrets are the contents of references, and certificates, by upstream.
	secrets map[string]cache.Secrets
	// refused are the fields that could not be followed.
	refused field.ErrorList
	// isNew says that no cache was ever deployed, as far as is known.
	isNew bool
	// cleaned says that a cleaner has run, and that its deletion was asked for.
	cleaned bool
	// shoot is nil until it is asked for, see Actuator.shoot.
	shoot client.Client
}

// read reads and checks everything that a reconciliation depends on, and writes nothing.
func (a *Actuator) read(ctx context.Context, ex *extensionsv1alpha1.Extension) (*target, error) {
	if err := a.refresh(ctx, ex); err != nil {
		return nil, err
	}
	before, err := recordOf(ex)
	if err != nil {
		return nil, err
	}
	config, err := decodeConfig(ex, before.applied)
	if err != nil {
		return nil, err
	}
	cluster, err := a.cluster(ctx, ex.Namespace)
	if err != nil {
		return nil, err
	}
	if v1beta1helper.IsWorkerless(cluster.Shoot) {
		return nil, configurationProblem(errWorkerless)
	}
	secrets, mistakes, err := reference.Resolve(ctx, a.client, ex.Namespace, cluster.Shoot.Spec.Resources, config)
	if err != nil {
		return nil, err
	}
	if len(mistakes) > 0 {
		return nil, configurationProblem(mistakes.ToAggregate())
	}
	return &target{ex: ex, cluster: cluster, before: before, config: config, secrets: secrets, isNew: before.empty()}, nil
}

// shoot returns the client for the shoot. The access to it is read once for each reconciliation.
func (a *Actuator) shoot(ctx context.Context, t *target) (client.Client, error) {
	if t.shoot == nil {
		shoot, err := a.shootClient(ctx, t.ex.Namespace)
		if err != nil {
			return nil, err
		}
		t.shoot = shoot
	}
	return t.shoot, nil
}

// sleeps says that the shoot hibernates or is about to: nobody answers there, or soon will not.
func (t *target) sleeps() bool {
	return extensionscontroller.IsHibernationEnabled(t.cluster)
}

// secure returns the caches that serve by HTTPS.
func (t *target) secure() []v1alpha3.RegistryCache {
	return slices.DeleteFunc(slices.Clone(t.config.Caches), func(c v1alpha3.RegistryCache) bool { return !cache.ServesTLS(c) })
}

// record is what is true once the target is reached.
func (t *target) record(status *v1alpha3.RegistryStatus) record {
	applied := t.config
	if t.sleeps() || len(t.refused) > 0 {
		applied = t.underFormerNames()
	}
	return record{status: status, applied: applied, cleanUps: t.before.cleanUps}
}

// shootOf returns what the objects of caches depend on.
func shootOf(shoot *gardencorev1beta1.Shoot, image string) cache.Shoot {
	return cache.Shoot{
		Image:                 image,
		KubernetesVersion:     shoot.Spec.Kubernetes.Version,
		Networks:              networksOf(shoot),
		VerticalPodAutoscaler: v1beta1helper.ShootWantsVerticalPodAutoscaler(shoot),
	}
}

// networksOf returns the CIDRs of pods, services and nodes, sorted. The status has all of those of a shoot with two IP
// families; the spec has them while it is created.
func networksOf(shoot *gardencorev1beta1.Shoot) []string {
	all := map[string]bool{}
	if n := shoot.Spec.Networking; n != nil {
		for _, cidr := range []*string{n.Pods, n.Services, n.Nodes} {
			if cidr != nil {
				all[*cidr] = true
			}
		}
	}
	if n := shoot.Status.Networking; n != nil {
		for _, cidr := range slices.Concat(n.Pods, n.Services, n.Nodes) {
			all[cidr] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
