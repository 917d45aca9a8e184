// Package original stands in for gardener-extension-registry-cache, the extension that this one
// replaces, so that scenarios can take over what it leaves behind, and give it back.
//
// It is a reconstruction from a description of what the original writes (version v0.25.0-dev); no
// code of the original runs. These parts are real: the ManagedResources, the certificates of
// Gardener's secrets manager, the caches (distribution's stock image), gardenlet's flows, and the
// hosts.toml files, which gardener-node-agent writes from criConfig.containerd.registries. These
// parts are reconstructed:
//
//   - the controller: Extension acts on the Extension resource as the original does;
//   - its webhook: a MutatingAdmissionPolicy adds the registries to OperatingSystemConfigs;
//   - its Deployment: Chart renders one with the original's names and selector, without replicas.
//
// These parts are left out: VerticalPodAutoscalers, for which the testbed's Shoot has no API, the
// original's cleaner, and the webhook for registry-mirror.
package original

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/secrets"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

const (
	// Finalizer is the original's finalizer on the Extension.
	Finalizer = "extensions.gardener.cloud/registry-cache"
	// Lease is the name of the original's leader election lease, in the extension's namespace.
	Lease = "extension-registry-cache-leader-election"

	origin = "registry-cache"
	// pollInterval is short, because the scenarios wait for it in each flow.
	pollInterval = 200 * time.Millisecond
	// servicesTimeout bounds how long gardener-resource-manager takes to apply the Services.
	servicesTimeout = time.Minute
)

//go:embed all:chart
var chartFiles embed.FS

// Chart returns a chart with the names and the selector of the original's Deployment, for
// cachetest.InstallStopped.
func Chart() (fs.FS, error) { return fs.Sub(chartFiles, "chart") }

// Extension acts as the original's controller and webhook.
type Extension struct {
	Seed, Shoot client.Client
	Image       string // of distribution, on the shoot's nodes
	Log         logr.Logger
}

// Run reconciles the Extension in the namespace whenever gardenlet asks for it, until ctx ends.
func (e Extension) Run(ctx context.Context, namespace string) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// gardenlet may write the Extension at the same time.
		if err := e.Reconcile(ctx, namespace); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("act as the original: %w", err)
		}
	}
}

// Reconcile reconciles the Extension in the namespace if gardenlet has asked for it. As the
// original does, it reports success before the caches run.
func (e Extension) Reconcile(ctx context.Context, namespace string) error {
	extension := &extensionsv1alpha1.Extension{}
	err := e.Seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha3.ExtensionType}, extension)
	asked := extension.Annotations[v1beta1constants.GardenerOperation] == v1beta1constants.GardenerOperationReconcile
	if apierrors.IsNotFound(err) || err == nil && !asked {
		return nil
	}
	if err != nil {
		return err
	}
	if controllerutil.AddFinalizer(extension, Finalizer) {
		if err := e.Seed.Update(ctx, extension); err != nil {
			return err
		}
	}
	cluster, err := extensions.GetCluster(ctx, e.Seed, namespace)
	if err != nil {
		return err
	}
	status := extension.Status.ProviderStatus
	if hibernation := cluster.Shoot.Spec.Hibernation; hibernation == nil || !ptr.Deref(hibernation.Enabled, false) {
		if status, err = e.deploy(ctx, cluster, extension); err != nil {
			return err
		}
	}
	return e.finish(ctx, extension, status)
}

// deploy writes all objects and returns the providerStatus.
func (e Extension) deploy(
	ctx context.Context, cluster *extensions.Cluster, extension *extensionsv1alpha1.Extension,
) (*runtime.RawExtension, error) {
	namespace := extension.Namespace
	config, err := v1alpha3.DecodeConfig(extension.Spec.ProviderConfig.Raw)
	if err != nil {
		return nil, err
	}
	v1alpha3.SetDefaults(config)
	var caches []cache
	var services []client.Object
	for _, c := range config.Caches {
		caches = append(caches, cache{RegistryCache: c})
		services = append(services, caches[len(caches)-1].service())
	}
	if err := e.deployResource(ctx, namespace, v1alpha3.ManagedResourceServices, services); err != nil {
		return nil, err
	}
	if err := e.findAddresses(ctx, caches); err != nil {
		return nil, err
	}
	bundle, err := e.issue(ctx, cluster, caches)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{networkPolicy()}
	for _, c := range caches {
		own, err := c.objects(e.Image)
		if err != nil {
			return nil, err
		}
		objects = append(objects, own...)
	}
	if err := e.deployResource(ctx, namespace, v1alpha3.ManagedResourceCaches, objects); err != nil {
		return nil, err
	}
	for _, object := range Monitoring(namespace) {
		if err := e.replace(ctx, object); err != nil {
			return nil, err
		}
	}
	var ca []byte
	if bundle != nil {
		ca = bundle.Data[secrets.DataKeyCertificateBundle]
	}
	if err := e.mutate(ctx, namespace, caches, ca); err != nil {
		return nil, err
	}
	return providerStatus(caches, bundle)
}

// deployResource writes the ManagedResource of the caches, or that of their Services.
func (e Extension) deployResource(ctx context.Context, namespace, name string, objects []client.Object) error {
	caches := name == v1alpha3.ManagedResourceCaches
	registry := managedresources.NewRegistry(kubernetes.ShootScheme, kubernetes.ShootCodec, kubernetes.ShootSerializer)
	data, err := registry.AddAllAndSerialize(objects...)
	if err != nil {
		return fmt.Errorf("render ManagedResource %s: %w", name, err)
	}
	secretName, secret := managedresources.NewSecret(e.Seed, namespace, name, data, !caches)
	resource := managedresources.NewForShoot(e.Seed, namespace, name, origin, false).WithSecretRef(secretName)
	if caches {
		resource.DeletePersistentVolumeClaims(true)
	}
	if err := errors.Join(secret.Reconcile(ctx), resource.Reconcile(ctx)); err != nil {
		return fmt.Errorf("write ManagedResource %s: %w", name, err)
	}
	return nil
}

// findAddresses waits until each cache has a Service, and sets the addresses.
func (e Extension) findAddresses(ctx context.Context, caches []cache) error {
	return gardener.Poll(ctx, servicesTimeout, "the original's Services are not in the shoot", func(ctx context.Context) error {
		for i := range caches {
			service := &corev1.Service{}
			key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: caches[i].serviceName()}
			if err := e.Shoot.Get(ctx, key, service); err != nil {
				return err
			}
			caches[i].address = service.Spec.ClusterIP
		}
		return nil
	})
}

func (c cache) endpoint() string {
	return c.scheme() + "://" + net.JoinHostPort(c.address, strconv.Itoa(port))
}

// providerStatus returns a status with the original's fields. It names the Secret with the CA
// bundle, but does not contain the bundle.
func providerStatus(caches []cache, bundle *corev1.Secret) (*runtime.RawExtension, error) {
	status := struct {
		metav1.TypeMeta
		CASecretName string                         `json:"caSecretName,omitempty"`
		Caches       []v1alpha3.RegistryCacheStatus `json:"caches"`
	}{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: "RegistryStatus"}}
	if bundle != nil {
		status.CASecretName = bundle.Name
	}
	for _, c := range caches {
		status.Caches = append(status.Caches, v1alpha3.RegistryCacheStatus{Upstream: c.Upstream, Endpoint: c.endpoint(), RemoteURL: *c.RemoteURL})
	}
	raw, err := json.Marshal(status)
	return &runtime.RawExtension{Raw: raw}, err
}

// finish reports success, as Gardener's library does, and keeps what others wrote into the status.
func (e Extension) finish(ctx context.Context, extension *extensionsv1alpha1.Extension, status *runtime.RawExtension) error {
	patch := client.MergeFrom(extension.DeepCopy())
	delete(extension.Annotations, v1beta1constants.GardenerOperation)
	if err := e.Seed.Patch(ctx, extension, patch); err != nil {
		return fmt.Errorf("remove the annotation of the Extension: %w", err)
	}
	patch = client.MergeFrom(extension.DeepCopy())
	extension.Status.ProviderStatus, extension.Status.LastError = status, nil
	extension.Status.ObservedGeneration = extension.Generation
	extension.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateSucceeded, Progress: 100,
		Description: "Successfully reconciled Extension", LastUpdateTime: metav1.NewTime(time.Now().UTC()),
	}
	if err := e.Seed.Status().Patch(ctx, extension, patch); err != nil {
		return fmt.Errorf("write the status of the Extension: %w", err)
	}
	return nil
}

// replace creates the object, or replaces an existing one.
func (e Extension) replace(ctx context.Context, object client.Object) error {
	wanted, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", object)
	}
	err := e.Seed.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		err = e.Seed.Create(ctx, wanted)
	} else if err == nil {
		wanted.SetResourceVersion(object.GetResourceVersion())
		err = e.Seed.Update(ctx, wanted)
	}
	if err != nil {
		return fmt.Errorf("write %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
