package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
)

// Actuator acts on Extensions of type registry-cache. Every method is idempotent: it may fail or be interrupted at any
// point, and is then called again.
type Actuator struct {
	client      client.Client
	shootClient ShootClient
	images      charts.Images
	waits       waits
}

var _ extension.Actuator = &Actuator{}

// waits bounds everything the actuator waits for.
type waits struct {
	// interval is the time between two looks.
	interval time.Duration
	// cleaned is how long the cleaner may take on all nodes together.
	cleaned time.Duration
	// notReady is how much of that is given to nodes that are not ready, which may just be restarting, before they are
	// passed over.
	notReady time.Duration
	// deleted is how long one ManagedResource may take to go.
	deleted time.Duration
	// applied is how long gardener-resource-manager may go on reporting that it cannot apply the caches, which may be what
	// it thought of an earlier state of them, before a reconciliation reports that and is retried.
	applied time.Duration
	// endpoints is how long the Services may take before a reconciliation reports an error and is retried.
	endpoints time.Duration
}

// NewActuator returns an Actuator. The client is for the seed and must not read from a cache; images are what it deploys.
func NewActuator(seed client.Client, shootClient ShootClient, images charts.Images) *Actuator {
	return &Actuator{
		client:      seed,
		shootClient: shootClient,
		images:      images,
		waits: waits{
			interval:  time.Second,
			cleaned:   3 * time.Minute,
			notReady:  time.Minute,
			deleted:   2 * time.Minute,
			applied:   3 * time.Second,
			endpoints: 15 * time.Second,
		},
	}
}

// Reconcile brings the shoot to what the providerConfig asks for. A cache that is in the providerStatus and no longer in
// the providerConfig is removed in this order: the nodes are cleaned, the providerStatus forgets it, its objects go. So
// no node that is ready is left with a mirror that does not exist any more. A providerConfig that cannot be decoded or is invalid
// changes nothing; neither does one without caches.
func (a *Actuator) Reconcile(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if err := a.refresh(ctx, ex); err != nil {
		return err
	}
	config, err := decodeConfig(ex)
	if err != nil {
		return err
	}
	cluster, err := a.cluster(ctx, ex.Namespace)
	if err != nil {
		return err
	}
	status, err := decodeStatus(ex)
	if err != nil {
		return err
	}

	if gone := removed(status, config); len(gone) > 0 && nodesToClean(cluster) {
		log.Info("Cleaning the nodes of removed upstreams", "upstreams", gone)
		if err := a.clean(ctx, log, ex.Namespace, cleaner.Task{Upstreams: gone}); err != nil {
			return err
		}
	} else if err := a.remove(ctx, ex.Namespace, cleanerName); err != nil {
		return err
	}
	kept := retained(status, config)
	if err := a.forget(ctx, ex, status, kept); err != nil {
		return err
	}

	if err := a.deployCaches(ctx, ex.Namespace, config); err != nil {
		return err
	}
	if extensionscontroller.IsHibernationEnabled(cluster) {
		log.Info("Not asking for endpoints, as the shoot hibernates")
		return nil
	}
	caches, err := a.awaitEndpoints(ctx, ex.Namespace, config, len(kept) < len(config.Caches))
	if err != nil {
		return err
	}
	return a.setStatus(ctx, ex, newStatus(caches))
}

// Delete removes the caches. While the shoot lives on, its nodes are cleaned first: of all upstreams, and of the unit. A
// shoot that is being deleted, or that hibernates, has no nodes to clean; then a cleaner left over from before goes too.
func (a *Actuator) Delete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if err := a.refresh(ctx, ex); err != nil {
		return client.IgnoreNotFound(err)
	}
	cluster, err := a.cluster(ctx, ex.Namespace)
	if err != nil {
		return err
	}
	if ex.Status.ProviderStatus != nil && nodesToClean(cluster) {
		log.Info("Cleaning the nodes of all upstreams")
		if err := a.clean(ctx, log, ex.Namespace, cleaner.Task{All: true}); err != nil {
			return err
		}
		// The nodes are clean now; should the caches take long to go, a retry need not clean them again.
		if err := a.setStatus(ctx, ex, nil); err != nil {
			return err
		}
	}
	return a.remove(ctx, ex.Namespace, cleanerName, cachesName)
}

// ForceDelete asks for the deletion of everything and waits for nothing: gardenlet drops what remains.
func (a *Actuator) ForceDelete(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.requestDeletion(ctx, ex.Namespace, cleanerName, cachesName)
}

// Restore does what Reconcile does: the control plane came to another seed, the shoot is where it was.
func (a *Actuator) Restore(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.Reconcile(ctx, log, ex)
}

// Migrate lets go of the caches, which stay in the shoot with their content, for another seed to adopt them.
func (a *Actuator) Migrate(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if err := a.keepCaches(ctx, ex.Namespace); err != nil {
		return err
	}
	return a.remove(ctx, ex.Namespace, cleanerName, cachesName)
}

// refresh reads the Extension anew: the library hands out its cached copy, which may not have the last status yet.
func (a *Actuator) refresh(ctx context.Context, ex *extensionsv1alpha1.Extension) error {
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(ex), ex); err != nil {
		return fmt.Errorf("reading extension %s: %w", client.ObjectKeyFromObject(ex), err)
	}
	return nil
}

func (a *Actuator) cluster(ctx context.Context, namespace string) (*extensionscontroller.Cluster, error) {
	cluster, err := extensionscontroller.GetCluster(ctx, a.client, namespace)
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", namespace, err)
	}
	if cluster.Shoot == nil {
		return nil, fmt.Errorf("cluster %s has no shoot", namespace)
	}
	return cluster, nil
}

// nodesToClean says whether the shoot has nodes that outlive this reconciliation. In a shoot that is being deleted the
// cleaner would have no node to run on, and would hold up the deletion (gardener-extension-registry-cache#83, #173).
func nodesToClean(cluster *extensionscontroller.Cluster) bool {
	return cluster.Shoot.DeletionTimestamp == nil && !extensionscontroller.IsHibernated(cluster)
}
