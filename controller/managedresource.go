package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/controllerutils"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

const (
	servicesName = v1alpha3.ManagedResourceServices
	cachesName   = v1alpha3.ManagedResourceCaches
	cleanerName  = v1alpha3.ManagedResourceCleaner
	// monitoringName is the ManagedResource for the shoot's Prometheus and Plutono, applied to the
	// seed.
	monitoringName = "extension-registry-cache-monitoring"
	// referencesName is gardenlet's ManagedResource with copies of the Secrets to which the Shoot
	// refers.
	referencesName = "referenced-resources"
	// origin tells gardenlet not to delete these ManagedResources together with its own.
	origin = "registry-cache"
)

// applyToShoot applies objects to the shoot. The claims of removed caches are deleted with them.
func applyToShoot(ctx context.Context, c client.Client, namespace, name string, objects []client.Object) error {
	return apply(ctx, c, namespace, name, shootEncoder, objects, func(c client.Client) *builder.ManagedResource {
		return managedresources.NewForShoot(c, namespace, name, origin, false).DeletePersistentVolumeClaims(name == cachesName)
	})
}

// apply writes a ManagedResource and its Secret unless they are up to date. The function kind
// returns the other settings of the ManagedResource. With a writer for a new target, apply fails
// with AlreadyExists if the ManagedResource or the Secret exists.
func apply(
	ctx context.Context, c client.Client, namespace, name string, encoder runtime.Encoder, objects []client.Object,
	kind func(client.Client) *builder.ManagedResource,
) error {
	data, err := encodeManifests(encoder, objects)
	if err != nil {
		return err
	}
	secretName, secret := managedresources.NewSecret(c, namespace, name, data, true)
	if err := kind(secretFirst{c, secretName, secret}).WithSecretRef(secretName).Reconcile(ctx); err != nil {
		return fmt.Errorf("write ManagedResource %s: %w", name, err)
	}
	return nil
}

// writer is a client for apply. If nothing is deployed yet, its Get returns NotFound without a
// request. Gardener's library would otherwise look up objects that are about to be created.
type writer struct {
	client.Client
	isNew bool
}

func (w writer) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if w.isNew {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return w.Client.Get(ctx, key, object, options...)
}

// secretFirst is a client that writes the Secret of a ManagedResource after it has read the
// ManagedResource. It sends no request for a Secret with which the ManagedResource was already
// applied: the name of the Secret contains a hash of its content. It rejects a ManagedResource that
// is being deleted, because the new content would be lost.
type secretFirst struct {
	client.Client
	name   string
	secret *builder.Secret
}

func (s secretFirst) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	mr, ok := object.(*resourcesv1alpha1.ManagedResource)
	if !ok { // the library would mark the previous Secret for the garbage collector, which NewSecret has done
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	err := s.Client.Get(ctx, key, mr, options...)
	if err == nil && mr.DeletionTimestamp != nil {
		return retry.Waiting(errors.New("it is still being deleted"))
	}
	refers := slices.ContainsFunc(mr.Spec.SecretRefs, func(ref corev1.LocalObjectReference) bool { return ref.Name == s.name })
	if !refers {
		metav1.SetMetaDataAnnotation(&mr.ObjectMeta, annotationWritten, time.Now().Format(time.RFC3339))
	}
	if client.IgnoreNotFound(err) != nil || refers && health.CheckManagedResourceApplied(mr) == nil {
		return err
	}
	if failed := s.secret.Reconcile(ctx); failed != nil {
		return fmt.Errorf("write its Secret: %w", failed)
	}
	return err
}

// annotationWritten contains the time when the content of a ManagedResource was last written. The
// age of its Secret is no substitute: a Secret with the same content may already exist.
const annotationWritten = "registry.extensions.gardener.cloud/written"

// written returns the time when the content of the ManagedResource was last written.
func written(mr *resourcesv1alpha1.ManagedResource) time.Time {
	if at, err := time.Parse(time.RFC3339, mr.Annotations[annotationWritten]); err == nil {
		return at
	}
	return mr.CreationTimestamp.Time
}

func (a *Actuator) managedResource(ctx context.Context, namespace, name string) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, mr); err != nil {
		return nil, fmt.Errorf("read ManagedResource %s: %w", name, err)
	}
	return mr, nil
}

// objects returns the objects of a ManagedResource for the shoot.
func (a *Actuator) objects(ctx context.Context, namespace, name string) ([]client.Object, error) {
	objects, err := managedresources.GetObjects(ctx, shootKinds{a.client}, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("read the objects of ManagedResource %s: %w", name, err)
	}
	return objects, nil
}

// shootKinds is a client with which Gardener's library decodes objects of shoots, such as
// VerticalPodAutoscalers.
type shootKinds struct{ client.Client }

func (shootKinds) Scheme() *runtime.Scheme { return kubernetes.ShootScheme }

// remove deletes ManagedResources and waits until they and their objects are gone. A
// ManagedResource that does not exist costs one request. remove does not wait for objects in a
// sleeping shoot, which are deleted when the shoot wakes up: until then, the Extension would exist
// and block a new one.
func (a *Actuator) remove(ctx context.Context, namespace string, asleep bool, names ...string) error {
	var waitFor []string
	for _, name := range names {
		found, err := a.requestDeletion(ctx, namespace, name)
		if err != nil {
			return err
		}
		if found && (!asleep || name == monitoringName) {
			waitFor = append(waitFor, name)
		}
	}
	return a.await(ctx, func() error {
		var remaining []error
		for _, name := range waitFor {
			remaining = append(remaining, a.remains(ctx, namespace, name))
		}
		return errors.Join(remaining...)
	})
}

// sleeps reports whether hibernation has stopped gardener-resource-manager. A shoot that is being
// deleted wakes up first.
func sleeps(cluster *extensionscontroller.Cluster) bool {
	return extensionscontroller.IsHibernated(cluster) && cluster.Shoot.DeletionTimestamp == nil
}

// remains returns nil if the ManagedResource is gone, and otherwise an error with the reason.
func (a *Actuator) remains(ctx context.Context, namespace, name string) error {
	mr, err := a.managedResource(ctx, namespace, name)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	var reason string
	applied := v1beta1helper.GetCondition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if applied != nil && applied.Status != gardencorev1beta1.ConditionTrue {
		reason = fmt.Sprintf(": %s: %s", applied.Reason, applied.Message)
	}
	return retry.Waiting(fmt.Errorf("ManagedResource %s is still being deleted%s", name, reason))
}

// requestDeletion requests the deletion of the ManagedResource and its Secrets. They exist until
// the objects are gone. requestDeletion reports whether there was a ManagedResource.
func (a *Actuator) requestDeletion(ctx context.Context, namespace, name string) (bool, error) {
	if _, err := a.managedResource(ctx, namespace, name); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if err := managedresources.Delete(ctx, a.client, namespace, name, true); err != nil {
		return true, fmt.Errorf("delete ManagedResource %s: %w", name, err)
	}
	return true, nil
}

// entrust lets gardener-resource-manager delete the caches of a hibernated shoot when it wakes up.
// It deletes only what the status of a ManagedResource with its finalizer lists. After a migration
// in hibernation it has written neither, so entrust writes both.
func (a *Actuator) entrust(ctx context.Context, namespace string, before record) error {
	if len(before.running) == 0 {
		return nil
	}
	mr, err := a.managedResource(ctx, namespace, cachesName)
	if apierrors.IsNotFound(err) { // the restoration found a mistake
		if err = applyToShoot(ctx, a.client, namespace, cachesName, nil); err == nil {
			mr, err = a.managedResource(ctx, namespace, cachesName)
		}
	}
	if err != nil || mr.DeletionTimestamp != nil {
		return err
	}
	listed := mr.DeepCopy()
	for _, id := range before.running {
		for _, object := range cache.References(id, before.deployed(id.Upstream)) {
			listed.Status.Resources = append(listed.Status.Resources, resourcesv1alpha1.ObjectReference{ObjectReference: object})
		}
	}
	if before.takenOverAt != "" {
		policy := corev1.ObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: originalPolicy.Namespace, Name: originalPolicy.Name}
		listed.Status.Resources = append(listed.Status.Resources, resourcesv1alpha1.ObjectReference{ObjectReference: policy})
	}
	if err := a.client.Status().Patch(ctx, listed, client.MergeFrom(mr)); err != nil {
		return fmt.Errorf("list the running caches in the status of ManagedResource %s: %w", cachesName, err)
	}
	if err := controllerutils.AddFinalizers(ctx, a.client, listed, resourcemanagerpredicate.FinalizerName); err != nil {
		return fmt.Errorf("leave ManagedResource %s to gardener-resource-manager: %w", cachesName, err)
	}
	return nil
}

var (
	shootEncoder = newEncoder(kubernetes.ShootScheme, kubernetes.ShootCodec)
	seedEncoder  = newEncoder(kubernetes.SeedScheme, kubernetes.SeedCodec)
	// compressor is shared, because its tables take 800 KiB. Creating them each time was more than
	// half of a reconciliation's allocations. Those of managedresources.Registry take 6 MiB.
	compressor  = brotli.NewWriterOptions(nil, brotli.WriterOptions{Quality: 4, LGWin: 16})
	compressing sync.Mutex
)

func newEncoder(scheme *runtime.Scheme, codecs serializer.CodecFactory) runtime.Encoder {
	return codecs.EncoderForVersion(
		json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{}), schema.GroupVersions(scheme.PrioritizedVersionsAllGroups()))
}

// encodeManifests returns the data of a ManagedResource's Secret: one JSON document per object, in
// order, compressed with Brotli. The same objects give the same bytes.
func encodeManifests(encoder runtime.Encoder, objects []client.Object) (map[string][]byte, error) {
	var data bytes.Buffer
	compressing.Lock()
	defer compressing.Unlock()
	compressor.Reset(&data)
	for _, object := range objects {
		// If the data began with a brace, gardener-resource-manager would parse it as JSON.
		if _, err := compressor.Write([]byte("---\n")); err != nil {
			return nil, err
		}
		if err := encoder.Encode(object, compressor); err != nil {
			return nil, fmt.Errorf("encode %T %s: %w", object, object.GetName(), err)
		}
	}
	err := compressor.Close()
	return map[string][]byte{resourcesv1alpha1.CompressedDataKey: data.Bytes()}, err
}
