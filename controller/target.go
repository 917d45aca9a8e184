package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/reference"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// target holds the input and the progress of one reconciliation. Its config is valid.
type target struct {
	ex      *extensionsv1alpha1.Extension
	cluster *extensionscontroller.Cluster
	before  record                   // from earlier reconciliations
	config  *v1alpha3.RegistryConfig // the providerConfig with defaults, without the delayed caches
	// delayed are the configured upstreams whose earlier cache must be deleted first.
	delayed []string
	// identities are those of the caches of config, in the same order. leaving are those of removed
	// caches that are not gone yet.
	identities, leaving v1alpha3.Identities
	secrets             map[string]cache.Secrets // referenced Secrets and certificates, by upstream
	released            []client.Object          // Services of an early version, see deployedIdentities
	isNew               bool                     // no earlier attempt has deployed anything
	cleaned             bool                     // a cleaner has run and its deletion was requested
	shoot               client.Client            // nil if hibernation is enabled
	missing             error                    // the reason why Services are missing
}

// read reads and validates everything that a reconciliation needs, and writes nothing.
func (a *Actuator) read(ctx context.Context, ex *extensionsv1alpha1.Extension, cluster *extensionscontroller.Cluster) (*target, error) {
	before, err := recordOf(ex)
	if err != nil {
		return nil, err
	}
	if v1beta1helper.IsWorkerless(cluster.Shoot) { // the admission did not reject it
		return nil, configurationProblem(errors.New("the Shoot has no workers, so no node can run a cache or pull through it; " +
			"remove the extension from the Shoot, or add a worker pool"))
	}
	config, delayed, err := decodeConfig(ex, before)
	if err != nil {
		return nil, err
	}
	t := &target{ex: ex, cluster: cluster, before: before, config: config, delayed: delayed, isNew: before.empty()}
	if err := a.awaitCopies(ctx, ex.Namespace, config); err != nil {
		return nil, err
	}
	err = a.await(ctx, func() error {
		secrets, invalid, err := reference.Resolve(ctx, a.client, ex.Namespace, cluster.Shoot.Spec.Resources, config)
		if t.secrets = secrets; len(invalid) > 0 {
			return configurationProblem(invalid.ToAggregate())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	config.Caches = slices.DeleteFunc(config.Caches, func(c v1alpha3.RegistryCache) bool { return slices.Contains(delayed, c.Upstream) })
	for i := range config.Caches { // foreign Services can be found only when the shoot is awake
		if was := before.deployed(config.Caches[i].Upstream); was != nil && t.hibernationEnabled() {
			config.Caches[i].ServiceNameSuffix = was.ServiceNameSuffix
		}
	}
	if !t.hibernationEnabled() {
		if t.shoot, err = a.shootClient(ctx, ex.Namespace); err != nil {
			return nil, err
		}
	}
	return t, a.identify(ctx, t)
}

// awaitCopies waits until gardener-resource-manager has applied gardenlet's latest copies of the
// Shoot's Secrets, or has failed to: gardenlet triggers the extension without waiting for it.
func (a *Actuator) awaitCopies(ctx context.Context, namespace string, config *v1alpha3.RegistryConfig) error {
	if len(v1alpha3.References(config)) == 0 {
		return nil
	}
	return a.await(ctx, func() error {
		mr, err := a.managedResource(ctx, namespace, referencesName)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		failed := errors.Is(notApplied(mr), errNotApplicable) // perhaps because of another copy
		if err := health.CheckManagedResourceApplied(mr); err != nil && !failed {
			return retry.Waiting(fmt.Errorf("the copies of the Shoot's Secrets are outdated: ManagedResource %s: %w", mr.Name, err))
		}
		return nil
	})
}

// hasNone reports whether no cache is wanted, not even a delayed one.
func (t *target) hasNone() bool { return len(t.config.Caches)+len(t.delayed) == 0 }

// lacksAddress reports whether the certificate of a cache needs an address that was never known.
func (t *target) lacksAddress() bool {
	return slices.ContainsFunc(t.identities, func(id v1alpha3.Identity) bool {
		return id.Address == "" && cache.ServesTLS(*find(t.config.Caches, id.Upstream))
	})
}

// hibernationEnabled reports whether the Shoot's spec enables hibernation. If so, the shoot's API
// server is stopped or will stop soon.
func (t *target) hibernationEnabled() bool {
	return extensionscontroller.IsHibernationEnabled(t.cluster)
}

// record returns the record to write after everything is deployed.
func (t *target) record(status *v1alpha3.RegistryStatus) record {
	return record{status: status, applied: t.config, cleanUps: t.before.cleanUps, running: slices.Concat(t.identities, t.leaving)}
}

// shootOf returns the properties of the shoot that matter to the objects of caches.
func shootOf(shoot *gardencorev1beta1.Shoot, images charts.Images) cache.Shoot {
	return cache.Shoot{
		Image:                 images.RegistryCache,
		Architectures:         images.RegistryCacheArchitectures,
		KubernetesVersion:     shoot.Spec.Kubernetes.Version,
		Networks:              networksOf(shoot),
		VerticalPodAutoscaler: v1beta1helper.ShootWantsVerticalPodAutoscaler(shoot),
	}
}

// networksOf returns the sorted CIDRs of pods, services and nodes. For a dual-stack shoot, only the
// status contains all of them. While the shoot is being created, only the spec contains any.
func networksOf(shoot *gardencorev1beta1.Shoot) []string {
	spec, status := ptr.Deref(shoot.Spec.Networking, gardencorev1beta1.Networking{}), ptr.Deref(shoot.Status.Networking, gardencorev1beta1.NetworkingStatus{})
	all := sets.New(slices.Concat(status.Pods, status.Services, status.Nodes)...)
	for _, cidr := range []*string{spec.Pods, spec.Services, spec.Nodes} {
		all.Insert(ptr.Deref(cidr, ""))
	}
	return sets.List(all.Delete(""))
}

// decodeConfig returns the providerConfig, valid and with defaults, and the upstreams whose earlier
// cache must be deleted first: it is leaving, or differs in an immutable field. The latter happens
// if two quick updates remove a cache and add it again. Without a providerConfig there are no
// caches. Errors contain field paths and the code ERR_CONFIGURATION_PROBLEM, which makes Gardener
// show them to the Shoot's owner.
func decodeConfig(ex *extensionsv1alpha1.Extension, before record) (config *v1alpha3.RegistryConfig, delayed []string, err error) {
	config, err = v1alpha3.DecodeConfig(ptr.Deref(ex.Spec.ProviderConfig, runtime.RawExtension{}).Raw)
	if errors.Is(err, v1alpha3.ErrEmpty) { // a seed enables the extension for all of its Shoots
		return &v1alpha3.RegistryConfig{}, nil, nil
	}
	if err != nil {
		return nil, nil, configurationProblem(err)
	}
	v1alpha3.SetDefaults(config)
	old := before.applied.DeepCopy()
	for i := range config.Caches {
		c := &config.Caches[i]
		was := before.deployed(c.Upstream)
		_, runs := before.running.Of(c.Upstream)
		if was == nil && runs && before.applied != nil || was != nil && v1alpha3.Replaces(c, was) {
			old.Caches = slices.DeleteFunc(old.Caches, func(o v1alpha3.RegistryCache) bool { return o.Upstream == c.Upstream })
			delayed = append(delayed, c.Upstream)
		}
	}
	if errs := v1alpha3.ValidateUpdate(config, old, before.running); len(errs) > 0 {
		return nil, nil, configurationProblem(errs.ToAggregate())
	}
	return config, delayed, nil
}

func isConfigurationProblem(err error) bool {
	return slices.Contains(v1beta1helper.ExtractErrorCodes(err), gardencorev1beta1.ErrorConfigurationProblem)
}

func configurationProblem(err error) error {
	return v1beta1helper.NewErrorWithCodes(
		fmt.Errorf("providerConfig of Extension %s: %w", v1alpha3.ExtensionType, err), gardencorev1beta1.ErrorConfigurationProblem)
}
