package controller

import (
	"context"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
)

// Reconcile brings the shoot to what the providerConfig asks for. A cache that ran and is not in the providerConfig any
// more is removed in this order: the nodes are cleaned, the status forgets it, its objects go. So no node that is ready is
// left with a mirror that does not exist any more. A providerConfig that cannot be decoded, is invalid or refers to what
// is not there changes nothing; neither does one without caches. A volume that cannot grow is reported at the end, when
// everything else is done.
func (a *Actuator) Reconcile(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	t, err := a.read(ctx, ex)
	if err != nil {
		return err
	}
	if err := a.cleanRemoved(ctx, log, t); err != nil {
		return err
	}
	if err := a.deploy(ctx, log, t); err != nil {
		return err
	}
	if t.cleaned {
		if err := a.remove(ctx, ex.Namespace, cleanerName); err != nil {
			return err
		}
	}
	caches.WithLabelValues(ex.Namespace).Set(float64(len(t.config.Caches)))
	if len(t.refused) > 0 {
		return configurationProblem(t.refused.ToAggregate())
	}
	return nil
}

// cleanRemoved takes the configuration of removed upstreams off the nodes, and then out of the status, before their caches
// go: from there on the webhook tells no node about them, and a retry does not clean again. The cleaner goes while the caches
// are deployed; a retry waits for it here.
func (a *Actuator) cleanRemoved(ctx context.Context, log logr.Logger, t *target) error {
	gone := t.before.removed(t.config)
	if len(gone) == 0 {
		if t.isNew {
			return nil // nothing ever had to be cleaned
		}
		return a.removeFrom(ctx, log, t.cluster, cleanerName)
	}
	var conditions []gardencorev1beta1.Condition
	if nodesToClean(t.cluster) {
		log.Info("Cleaning the nodes of removed upstreams", "upstreams", gone)
		if err := a.countCleanUp(ctx, t); err != nil {
			return err
		}
		passedOver, err := a.clean(ctx, log, t.ex.Namespace, cleaner.Task{Upstreams: gone})
		if err != nil {
			return err
		}
		t.cleaned = true
		conditions = append(conditions, nodesCleaned(a.clock, t.ex, passedOver))
		if err := a.removeOrphans(ctx, t.ex.Namespace, gone); err != nil {
			return err
		}
	} else if err := a.removeFrom(ctx, log, t.cluster, cleanerName); err != nil {
		return err
	}
	return a.write(ctx, t.ex, t.before.retained(t.config), conditions...)
}

// countCleanUp makes it known that a clean-up is about to begin. The webhook makes the number part of the unit, because
// gardener-node-agent applies no OperatingSystemConfig that is like the last one: if a removal is taken back, nodes that were
// cleaned already would stay without the mirror. A clean-up that goes on was counted when it began.
func (a *Actuator) countCleanUp(ctx context.Context, t *target) error {
	mr, err := a.managedResource(ctx, t.ex.Namespace, cleanerName)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && mr.DeletionTimestamp == nil && t.before.cleanUps > 0 {
		return nil
	}
	t.before.cleanUps++
	return a.write(ctx, t.ex, t.before)
}

// deploy brings the caches, and what watches them, into the shoot, and tells the status where they are.
func (a *Actuator) deploy(ctx context.Context, log logr.Logger, t *target) error {
	replaced, err := a.growVolumes(ctx, log, t)
	if err != nil {
		return err
	}
	certificates, err := a.certificates(ctx, log, t)
	if err != nil {
		return err
	}
	if err := a.deployObjects(ctx, t, replaced); t.isNew && apierrors.IsAlreadyExists(err) {
		// An attempt of before was interrupted. What it left in the shoot counts.
		t.isNew = false
		return a.deploy(ctx, log, t)
	} else if err != nil {
		return err
	}
	if t.sleeps() {
		log.Info("Not asking for endpoints, as the shoot hibernates")
		return a.write(ctx, t.ex, t.record(t.before.retained(t.config).status))
	}
	if err := a.replaceStranded(ctx, log, t); err != nil {
		return err
	}
	endpoints, err := a.endpointsOf(ctx, t, certificates)
	if err != nil {
		return err
	}
	if err := a.awaitReplaced(ctx, t.ex.Namespace, replaced); err != nil {
		return err
	}
	if err := a.awaitCertificates(ctx, log, t, certificates); err != nil {
		return err
	}
	if err := a.pruneCertificates(ctx, log, t, certificates); err != nil {
		return err
	}
	return a.write(ctx, t.ex, t.record(newStatus(endpoints, certificates.bundle())))
}

func (a *Actuator) deployObjects(ctx context.Context, t *target, replaced []v1alpha3.RegistryCache) error {
	if err := a.deployCaches(ctx, t); err != nil {
		return err
	}
	if err := a.deployMonitoring(ctx, t); err != nil {
		return err
	}
	t.isNew = false
	if len(replaced) == 0 {
		return nil
	}
	// If the ManagedResource is as it was, gardener-resource-manager would not look for the StatefulSets for an hour.
	return a.requestReconciliation(ctx, t.ex.Namespace, cachesName)
}

func (a *Actuator) pruneCertificates(ctx context.Context, log logr.Logger, t *target, c *certificates) error {
	if c.authority != nil {
		return c.authority.Prune(ctx)
	}
	if t.before.hadTLS() {
		return certificate.Remove(ctx, log, a.clock, a.client, t.ex.Namespace)
	}
	return nil
}
