// Package controller reconciles Extensions of type registry-cache. It deploys the caches into the
// shoot, cleans the nodes when caches are removed, and reports the endpoints in the providerStatus.
// The webhook passes the endpoints on to the nodes.
//
// The package deploys objects with ManagedResources. It accesses the shoot directly to read the
// state there, and to delete what gardener-resource-manager does not delete. Package volume does
// what a ManagedResource cannot: it grows claims, and deletes claims and pods that cannot be used.
//
// Packages cache and cleaner define the objects, and package nodeconfig the files on nodes.
package controller

import (
	"context"
	"errors"
	"fmt"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/extensions"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/cleaner"
	"github.com/gardener-extensions/registry-cache/controller/monitoring"
	"github.com/gardener-extensions/registry-cache/controller/reference"
	"github.com/gardener-extensions/registry-cache/controller/retry"
	"github.com/gardener-extensions/registry-cache/controller/shootclient"
)

// Actuator reconciles Extensions of type registry-cache. Every method may fail or be interrupted at
// any point. Calling it again is safe. No method takes longer than 9 seconds. If something is still
// in progress, the method returns an error that names it, and a later call continues.
//
// The methods need not read the Extension again, although the manager's cache may be outdated: the
// library has just written its status, and the answer contained the current Extension.
type Actuator struct {
	client      client.Client
	shootClient func(ctx context.Context, namespace string) (client.Client, error) // takes the shoot's namespace in the seed
	images      charts.Images
	clock       clock.Clock
	waits       timing
	retries     *retry.Limiter
	events      events.EventRecorder // Events on the Extension, see docs/observability.md
}

// NewActuator returns an Actuator. The client for the seed must not use the manager's cache.
func NewActuator(seed client.Client, shoots func(context.Context, string) (client.Client, error), images charts.Images) *Actuator {
	return &Actuator{
		client:      seed,
		shootClient: shoots,
		images:      images,
		clock:       clock.RealClock{},
		waits:       defaultTiming(),
		retries:     retry.NewLimiter(),
		events:      &events.FakeRecorder{},
	}
}

// Delete removes the caches. It first removes the configuration of all upstreams from the nodes,
// unless the shoot is being deleted or hibernated. Finally it waits a limited time until the disks
// are deleted. In a hibernated shoot, the objects disappear when the shoot wakes up. An undecodable
// status does not block the deletion.
func (a *Actuator) Delete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.run(ctx, ex, "delete", func(ctx context.Context) error {
		cluster, err := a.cluster(ctx, ex.Namespace)
		if err != nil {
			return err
		}
		before, undecodable := recordOf(ex)
		if before.takingOver { // otherwise a ManagedResource contains these objects
			if err := kubernetesutils.DeleteObjects(ctx, a.client, monitoring.References(ex.Namespace)...); err != nil {
				return fmt.Errorf("delete the monitoring of gardener-extension-registry-cache: %w", err)
			}
		}
		if mayBeOnNodes := undecodable != nil || ex.Status.State != nil || len(before.reported()) > 0; mayBeOnNodes && nodesToClean(cluster) {
			log.Info("Removing the configuration of all upstreams from the nodes")
			result, err := a.clean(ctx, log, ex, cleaner.Task{All: true, Endpoints: before.endpoints()})
			if err != nil {
				return err
			}
			// If a later step fails, the retry does not clean the nodes again.
			unchanged := ex.DeepCopy()
			ex.Status.ProviderStatus, ex.Status.State = nil, nil
			if err := a.patchStatus(ctx, ex, unchanged, result); err != nil {
				return err
			}
		}
		if sleeps(cluster) {
			if err := a.entrust(ctx, ex.Namespace, before); err != nil {
				return err
			}
		}
		if err := a.remove(ctx, ex.Namespace, sleeps(cluster), cleanerName, monitoringName, cachesName, servicesName); err != nil {
			return err
		}
		if !sleeps(cluster) {
			if err := a.awaitNoVolumes(ctx, log, ex); err != nil {
				return err
			}
		}
		return certificate.Remove(ctx, log, a.clock, a.client, ex.Namespace)
	})
}

// ForceDelete requests the deletion of everything, waits for nothing and returns all errors.
// gardenlet drops what remains.
func (a *Actuator) ForceDelete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.run(ctx, ex, "force-delete", func(ctx context.Context) error {
		var errs []error
		for _, name := range []string{cleanerName, monitoringName, cachesName, servicesName} {
			_, err := a.requestDeletion(ctx, ex.Namespace, name)
			errs = append(errs, err)
		}
		return errors.Join(append(errs, certificate.Remove(ctx, log, a.clock, a.client, ex.Namespace))...)
	})
}

// Restore does the same as Reconcile. In the new seed, gardenlet has already restored the state and
// the certificates, so Restore adopts everything in the shoot. A mistake of the owner fails only
// the next reconciliation: Gardener admits no correction before the restoration has succeeded.
func (a *Actuator) Restore(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.run(ctx, ex, "restore", func(ctx context.Context) error {
		err := a.reconcile(ctx, log, ex)
		if isConfigurationProblem(err) {
			log.Info("The caches keep running, and are adopted when the mistake is corrected", "mistake", err.Error())
			return a.restoreStatus(ctx, log, ex, err)
		}
		return err
	})
}

// restoreStatus writes the providerStatus of the running caches, as far as the state contains it.
// It also ends high availability whose deployment was interrupted in the previous seed.
func (a *Actuator) restoreStatus(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension, mistake error) error {
	r, err := recordOf(ex)
	if err != nil {
		return err
	}
	cluster, err := a.cluster(ctx, ex.Namespace)
	if err != nil {
		return err
	}
	applied := &v1alpha3.RegistryConfig{Caches: r.configured()}
	secrets, _, err := reference.Resolve(ctx, a.client, ex.Namespace, cluster.Shoot.Spec.Resources, applied)
	if err != nil && !retry.IsWaiting(err) { // a missing Secret may be the mistake itself
		return err
	}
	r.status = &v1alpha3.RegistryStatus{}
	shoot, err := a.shootClient(ctx, ex.Namespace)
	if err != nil {
		return err
	}
	for _, c := range applied.Caches {
		id, runs := r.running.Of(c.Upstream)
		if id.Address != "" {
			r.status.Caches = append(r.status.Caches, statusOf(&c, id.Address, secrets[c.Upstream]))
		}
		if runs && cache.Replicas(c) == 1 {
			if err := endAvailability(ctx, log, shoot, id); err != nil {
				return err
			}
		}
	}
	if err := a.writeWithCA(ctx, log, ex, cluster, r); err != nil {
		return err
	}
	return a.reportMistake(ctx, ex, mistake)
}

// Migrate releases the caches with their content, so that another seed can adopt them. gardenlet
// copies the certificates to that seed. Migrate removes the cleaner, even if it has not finished.
// status.state still lists the upstreams to clean, so the next seed cleans the nodes.
func (a *Actuator) Migrate(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return a.run(ctx, ex, "migrate", func(ctx context.Context) error {
		for _, name := range []string{cachesName, servicesName} {
			if err := managedresources.SetKeepObjects(ctx, a.client, ex.Namespace, name, true); err != nil {
				return fmt.Errorf("keep the objects of ManagedResource %s: %w", name, err)
			}
		}
		return a.remove(ctx, ex.Namespace, false, cleanerName, monitoringName, cachesName, servicesName)
	})
}

// cluster returns a Cluster with only its name and Shoot: the CloudProfile can take 200 KiB.
func (a *Actuator) cluster(ctx context.Context, namespace string) (*extensionscontroller.Cluster, error) {
	shoot, err := extensions.GetShoot(ctx, a.client, namespace)
	if err != nil {
		return nil, fmt.Errorf("read the Shoot of Cluster %s: %w", namespace, err)
	}
	if shoot == nil {
		return nil, fmt.Errorf("the Cluster %s has no Shoot", namespace)
	}
	return &extensionscontroller.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Shoot: shoot}, nil
}

// nodesToClean reports whether the shoot is neither hibernated nor being deleted. In a shoot that
// is being deleted, the cleaner would find no node and block the deletion
// (gardener-extension-registry-cache#83, #173).
func nodesToClean(cluster *extensionscontroller.Cluster) bool {
	return cluster.Shoot.DeletionTimestamp == nil && !extensionscontroller.IsHibernated(cluster)
}

// Options are the settings of the controller.
type Options struct {
	Controller controller.Options // its RateLimiter is replaced
	// IgnoreOperationAnnotation makes the controller reconcile changes without gardenlet's annotation.
	IgnoreOperationAnnotation bool
	ExtensionClasses          []extensionsv1alpha1.ExtensionClass // default: shoot
	Images                    charts.Images
}

// AddToManager adds the controller for Extensions of type registry-cache. The manager's scheme must
// contain the types of extensionscontroller.AddToScheme.
func AddToManager(ctx context.Context, mgr manager.Manager, options Options) error {
	// Do not read from the manager's cache. It may lack the actuator's last write, and may show a
	// ManagedResource that is not applied yet as healthy (gardener-extension-registry-cache#344).
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("create the client of the actuator: %w", err)
	}
	actuator := NewActuator(live, shootclient.New(live, shootclient.ForSome).For, options.Images)
	actuator.events = mgr.GetEventRecorder(v1alpha3.ExtensionType + "-controller")
	options.Controller.RateLimiter = actuator.retries
	states := &collector{extensions: mgr.GetClient(), classes: options.ExtensionClasses, elected: mgr.Elected()}
	if err := metrics.Registry.Register(states); err != nil {
		return fmt.Errorf("register the metrics of Extensions: %w", err)
	}
	return extension.Add(patientManager{mgr, actuator.retries}, extension.AddArgs{
		Actuator:                  actuator,
		Name:                      v1alpha3.ExtensionType,
		FinalizerSuffix:           v1alpha3.ExtensionType,
		ControllerOptions:         options.Controller,
		Predicates:                extension.DefaultPredicates(ctx, mgr, options.IgnoreOperationAnnotation),
		Type:                      v1alpha3.ExtensionType,
		IgnoreOperationAnnotation: options.IgnoreOperationAnnotation,
		ExtensionClasses:          options.ExtensionClasses,
	})
}
