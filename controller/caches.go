package controller

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"
	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/monitoring"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// writer returns the client that writes ManagedResources.
func (a *Actuator) writer(t *target) client.Client {
	if t.isNew {
		return createOnly{a.client}
	}
	return a.client
}

// deployServices writes the ManagedResource with the Services of all caches. A ManagedResource is
// applied only after all that it no longer contains is gone. That takes as long as a pod or volume
// of a removed cache needs, so these are in another ManagedResource.
func (a *Actuator) deployServices(ctx context.Context, t *target) error {
	shoot := shootOf(t.cluster.Shoot, a.images)
	var objects []client.Object
	for i, c := range t.config.Caches {
		services, err := cache.Services(c, t.identities[i], shoot)
		if err != nil {
			return err
		}
		objects = append(objects, services...)
		for _, previous := range t.identities[i].Previous {
			service, err := cache.Service(c, t.identities[i], shoot)
			if err != nil {
				return err
			}
			service.Name = previous.Name
			objects = append(objects, service)
		}
	}
	return applyToShoot(ctx, a.writer(t), t.ex.Namespace, servicesName, objects)
}

// deployCaches writes the ManagedResource with everything else of the caches. Volumes of removed
// caches are deleted.
func (a *Actuator) deployCaches(ctx context.Context, t *target) error {
	shoot := shootOf(t.cluster.Shoot, a.images)
	objects := slices.Clone(t.released)
	for i, c := range t.config.Caches {
		cacheObjects, err := cache.Objects(c, t.identities[i], shoot, t.secrets[c.Upstream])
		if err != nil {
			return err
		}
		objects = append(objects, cacheObjects...)
	}
	return applyToShoot(ctx, a.writer(t), t.ex.Namespace, cachesName, objects)
}

// observability makes gardenlet report what is wrong with the monitoring as such: not as
// ControlPlaneHealthy, which is its default for ManagedResources in the seed.
var observability = map[string]string{v1beta1constants.LabelCareConditionType: string(gardencorev1beta1.ShootObservabilityComponentsHealthy)}

// deployMonitoring writes the ManagedResource for the shoot's Prometheus and Plutono. Shoots of
// purpose testing have neither.
func (a *Actuator) deployMonitoring(ctx context.Context, t *target) error {
	if ptr.Deref(t.cluster.Shoot.Spec.Purpose, "") == gardencorev1beta1.ShootPurposeTesting {
		if t.isNew {
			return nil
		}
		return a.remove(ctx, t.ex.Namespace, monitoringName)
	}
	objects, err := monitoring.Objects(t.ex.Namespace, t.config, t.identities)
	if err != nil {
		return err
	}
	return apply(ctx, a.writer(t), t.ex.Namespace, monitoringName, seedEncoder, objects, func(c client.Client) *builder.ManagedResource {
		return managedresources.NewForSeed(c, t.ex.Namespace, monitoringName, false).WithLabels(observability)
	})
}

// certificates describes the certificates of the caches that serve HTTPS.
type certificates struct {
	ca        *certificate.CA   // nil if no cache serves HTTPS
	bundle    []byte            // of the CA
	addresses map[string]string // cluster IPs of the issued certificates, by upstream
}

// certificates issues a certificate for every HTTPS cache. In a hibernated shoot, the address of a
// new cache is unknown. Its certificate is for the names of its Service until the shoot wakes up.
func (a *Actuator) certificates(ctx context.Context, log logr.Logger, t *target) (*certificates, error) {
	if !slices.ContainsFunc(t.config.Caches, cache.ServesTLS) {
		return &certificates{}, nil
	}
	ca, err := certificate.Load(ctx, log, a.clock, a.client, t.cluster)
	if err != nil {
		return nil, err
	}
	if err := a.findAddresses(ctx, t); err != nil {
		return nil, err
	}
	c := &certificates{ca: ca, bundle: ca.Bundle, addresses: map[string]string{}}
	return c, c.issue(ctx, t)
}

// issue issues certificates for the known addresses and stores them in the target.
func (c *certificates) issue(ctx context.Context, t *target) error {
	for i := range t.config.Caches {
		this, id := &t.config.Caches[i], t.identities[i]
		if !cache.ServesTLS(*this) {
			continue
		}
		issued, err := c.ca.Issue(ctx, this, id)
		if err != nil {
			return err
		}
		c.addresses[this.Upstream] = id.Address
		secrets := t.secrets[this.Upstream]
		secrets.Certificate = issued
		t.secrets[this.Upstream] = secrets
	}
	return nil
}

// covers returns whether every HTTPS cache has a certificate for its address.
func (c *certificates) covers(t *target) bool {
	for upstream, address := range c.addresses {
		if id, _ := t.identities.Of(upstream); id.Address != address {
			return false
		}
	}
	return true
}

// findAddresses updates the addresses of the caches, and waits for those that were never known. A
// cache whose Service is missing keeps its last address, and so its certificate and its pods.
func (a *Actuator) findAddresses(ctx context.Context, t *target) error {
	if t.hibernationEnabled() {
		return nil
	}
	if !t.isNew {
		shoot, err := a.shoot(ctx, t)
		if err != nil {
			return err
		}
		services, err := listServices(ctx, shoot)
		if err != nil {
			return err
		}
		matchServices(services, t)
	}
	for i := range t.config.Caches {
		if cache.ServesTLS(t.config.Caches[i]) && t.identities[i].Address == "" {
			var err error
			t.endpoints, err = a.awaitEndpoints(ctx, t)
			return err
		}
	}
	return nil
}

// awaitCertificates waits until the caches serve with the new certificates, if the CA bundle is
// about to change: a node that drops the old CA too early would pull from the upstream. The pods
// restart for the new certificates. A cache that never becomes ready does not block the
// reconciliation for long.
func (a *Actuator) awaitCertificates(ctx context.Context, log logr.Logger, t *target, c *certificates) error {
	if c.ca == nil || t.before.status == nil || t.before.status.CABundle == nil || *t.before.status.CABundle == string(c.bundle) {
		return nil
	}
	return a.await(ctx, func() error {
		mr, err := a.managedResource(ctx, t.ex.Namespace, cachesName)
		if err != nil {
			return err
		}
		pending := health.CheckManagedResourceApplied(mr)
		if pending == nil {
			pending = health.CheckManagedResourceProgressing(mr)
		}
		if pending == nil {
			return nil
		}
		if a.clock.Since(written(mr)) >= a.waits.rolledOut {
			log.Info("Not all caches serve with their new certificate yet; until they do, nodes pull from the upstream", "reason", pending)
			return nil
		}
		return retry.Waiting(fmt.Errorf("the caches do not serve with their new certificates yet: %w", pending))
	})
}

// hostOf returns the host of an endpoint, or an empty string.
func hostOf(endpoint string) string {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}
