package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/extensions"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
)

// Actuator acts on Extensions of type registry-cache. Every method is idempotent: it may fail or be interrupted at any
// point, and is then called again.
type Actuator struct {
	client      client.Client
	shootClient ShootClient
	images      charts.Images
	clock       clock.Clock
	waits       waits
}

var _ extension.Actuator = &Actuator{}

// waits bounds everything the actuator waits for.
type waits struct {
	// interval is the time between two looks.
	interval time.Duration
	// cleaned is how long the cleaner may take on all nodes together.
	cleaned time.Duration
	// reported is how long the report of the cleaner's DaemonSet is enough to look at before all nodes and pods are: then,
	// after as long again, and each time that twice as long has passed.
	reported time.Duration
	// notReady is for how long a node must not have been ready before it is passed over: it may just be restarting.
	notReady time.Duration
	// stuck is how long there must have been a cleaner before nodes that are ready, and that it does not clean, are passed
	// over too. It is longer than one attempt: their configuration leads to a cache that is gone then.
	stuck time.Duration
	// deleted is how long the ManagedResources that are removed together may take to go.
	deleted time.Duration
	// applied is how long gardener-resource-manager may go on reporting that it cannot apply the caches, which may be what
	// it thought of an earlier state of them, before a reconciliation reports that and is retried.
	applied time.Duration
	// firstLook is how long gardener-resource-manager is given before the first look at caches that were written just now.
	firstLook time.Duration
	// endpoints is how long the Services may take before a reconciliation reports an error and is retried.
	endpoints time.Duration
	// replaced is how long a StatefulSet may take to come back with a bigger volume.
	replaced time.Duration
	// rolledOut is how long nodes keep the old certificate authority for caches that do not serve with their new
	// certificate.
	rolledOut time.Duration
}

// NewActuator returns an Actuator. The client is for the seed and must not read from a cache; images are what it deploys.
func NewActuator(seed client.Client, shootClient ShootClient, images charts.Images) *Actuator {
	return &Actuator{
		client:      seed,
		shootClient: shootClient,
		images:      images,
		clock:       clock.RealClock{},
		waits: waits{
			interval:  time.Second,
			cleaned:   3 * time.Minute,
			reported:  10 * time.Second,
			notReady:  time.Minute,
			stuck:     10 * time.Minute,
			deleted:   2 * time.Minute,
			applied:   3 * time.Second,
			firstLook: 500 * time.Millisecond,
			endpoints: 15 * time.Second,
			replaced:  15 * time.Second,
			rolledOut: 30 * time.Second,
		},
	}
}

// Delete removes the caches. While the shoot lives on, its nodes are cleaned of all upstreams first. A shoot that is being
// deleted, or that hibernates, has no nodes to clean; then a cleaner left over from before goes too. What is in a shoot that
// hibernates goes when it wakes up, and is not waited for. A status that cannot be read holds nothing up.
func (a *Actuator) Delete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if err := a.refresh(ctx, ex); err != nil {
		return client.IgnoreNotFound(err)
	}
	cluster, err := a.cluster(ctx, ex.Namespace)
	if err != nil {
		return err
	}
	if knownToNodes(ex) && nodesToClean(cluster) {
		log.Info("Cleaning the nodes of all upstreams")
		passedOver, err := a.clean(ctx, log, ex.Namespace, cleaner.Task{All: true})
		if err != nil {
			return err
		}
		if r, err := recordOf(ex); err == nil { // what cannot be read names no upstream
			if err := a.removeOrphans(ctx, ex.Namespace, r.upstreams()); err != nil {
				return err
			}
		}
		// The nodes are clean now; should the caches take long to go, a retry need not clean them again.
		if err := a.forget(ctx, ex, nodesCleaned(a.clock, ex, passedOver)); err != nil {
			return err
		}
	}
	if err := a.removeFrom(ctx, log, cluster, cleanerName, monitoringName, cachesName); err != nil {
		return err
	}
	caches.DeleteLabelValues(ex.Namespace)
	return certificate.Remove(ctx, log, a.clock, a.client, ex.Namespace)
}

// ForceDelete asks for the deletion of everything and waits for nothing: gardenlet drops what remains. What cannot be
// asked for does not keep the rest from being asked for.
func (a *Actuator) ForceDelete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	var errs []error
	for _, name := range []string{cleanerName, monitoringName, cachesName} {
		if _, err := a.requestDeletion(ctx, ex.Namespace, name); err != nil {
			errs = append(errs, err)
		}
	}
	caches.DeleteLabelValues(ex.Namespace)
	return errors.Join(append(errs, certificate.Remove(ctx, log, a.clock, a.client, ex.Namespace))...)
}

// Restore does what Reconcile does: the control plane came to another seed, the shoot is where it was. gardenlet brought
// along the state and the certificates, so that everything in the shoot is adopted as it is.
func (a *Actuator) Restore(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.Reconcile(ctx, log, ex)
}

// Migrate lets go of the caches, which stay in the shoot with their content, for another seed to adopt them. The
// certificates stay in the namespace, from where gardenlet takes them along. A cleaner does not stay: an upstream that was
// being removed is in the state, and the next seed removes it.
func (a *Actuator) Migrate(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if err := a.keepCaches(ctx, ex.Namespace); err != nil {
		return err
	}
	caches.DeleteLabelValues(ex.Namespace)
	return a.remove(ctx, ex.Namespace, cleanerName, monitoringName, cachesName)
}

// refresh reads the Extension anew: the library hands out its cached copy, which may not have the last status yet.
func (a *Actuator) refresh(ctx context.Context, ex *extensionsv1alpha1.Extension) error {
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(ex), ex); err != nil {
		return fmt.Errorf("reading extension %s: %w", client.ObjectKeyFromObject(ex), err)
	}
	return nil
}

// cluster returns the Cluster of the namespace, of which only the Shoot is decoded: a CloudProfile may have 200 KiB.
func (a *Actuator) cluster(ctx context.Context, namespace string) (*extensionscontroller.Cluster, error) {
	read := &extensionsv1alpha1.Cluster{}
	if err := a.client.Get(ctx, client.ObjectKey{Name: namespace}, read); err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", namespace, err)
	}
	shoot, err := extensions.ShootFromCluster(read)
	if err != nil {
		return nil, fmt.Errorf("decoding the shoot of cluster %s: %w", namespace, err)
	}
	if shoot == nil {
		return nil, fmt.Errorf("cluster %s has no shoot", namespace)
	}
	return &extensionscontroller.Cluster{ObjectMeta: read.ObjectMeta, Shoot: shoot}, nil
}

// nodesToClean says whether the shoot has nodes that outlive this reconciliation. In a shoot that is being deleted the
// cleaner would have no node to run on, and would hold up the deletion (gardener-extension-registry-cache#83, #173).
func nodesToClean(cluster *extensionscontroller.Cluster) bool {
	return cluster.Shoot.DeletionTimestamp == nil && !extensionscontroller.IsHibernated(cluster)
}

// asleep says that nobody removes the objects of a ManagedResource from the shoot: gardenlet has scaled its
// gardener-resource-manager down. Before it deletes the shoot it wakes it up.
func asleep(cluster *extensionscontroller.Cluster) bool {
	return extensionscontroller.IsHibernated(cluster) && cluster.Shoot.DeletionTimestamp == nil
}

// knownToNodes says whether a node may have our configuration. Neither field needs to be readable for that.
func knownToNodes(ex *extensionsv1alpha1.Extension) bool {
	return ex.Status.ProviderStatus != nil || ex.Status.State != nil
}
