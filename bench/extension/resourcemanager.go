package extension

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// resourceManager replaces the gardener-resource-managers of all shoots. It reports each
// ManagedResource as applied, but creates only Services: the extension needs their cluster IPs.
type resourceManager struct {
	managedResources client.Reader // reads from informers
	seed, shoot      client.Client

	mu      sync.Mutex
	created map[client.ObjectKey]bool // the Services, which are the same for all shoots
}

// Reconcile applies a ManagedResource, unless its current generation was already applied.
func (r *resourceManager) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := r.managedResources.Get(ctx, request.NamespacedName, mr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if mr.DeletionTimestamp != nil || mr.Status.ObservedGeneration == mr.Generation {
		return reconcile.Result{}, nil
	}
	if mr.Spec.Class == nil {
		if err := r.apply(ctx, mr); err != nil {
			return reconcile.Result{}, err
		}
	}
	patch := client.MergeFrom(mr.DeepCopy())
	mr.Status.ObservedGeneration = mr.Generation
	for _, condition := range []gardencorev1beta1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
		c := v1beta1helper.GetOrInitConditionWithClock(clock.RealClock{}, mr.Status.Conditions, condition)
		c = v1beta1helper.UpdatedConditionWithClock(clock.RealClock{}, c, gardencorev1beta1.ConditionTrue, "Bench", "Applied by a stand-in.")
		mr.Status.Conditions = v1beta1helper.MergeConditions(mr.Status.Conditions, c)
	}
	if err := r.seed.Status().Patch(ctx, mr, patch); err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the status of ManagedResource %s: %w", request, client.IgnoreNotFound(err))
	}
	return reconcile.Result{}, nil
}

func (r *resourceManager) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	objects, err := managedresources.GetObjects(ctx, r.seed, mr.Namespace, mr.Name)
	if err != nil {
		return fmt.Errorf("reading ManagedResource %s: %w", client.ObjectKeyFromObject(mr), err)
	}
	for _, object := range objects {
		service, ok := object.(*corev1.Service)
		if !ok {
			continue
		}
		if err := r.create(ctx, service); err != nil {
			return fmt.Errorf("creating service %s of ManagedResource %s: %w", service.Name, client.ObjectKeyFromObject(mr), err)
		}
	}
	return nil
}

func (r *resourceManager) create(ctx context.Context, service *corev1.Service) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(service)
	if r.created[key] {
		return nil
	}
	service.ObjectMeta = metav1.ObjectMeta{
		Namespace: service.Namespace, Name: service.Name, Labels: service.Labels, Annotations: service.Annotations,
	}
	if err := r.shoot.Create(ctx, service); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	r.created[key] = true
	return nil
}

// Unreachable returns a listener, on which the kernel accepts connections that nobody answers, and
// an address (host:port) that refuses connections. The caller must close the listener.
func Unreachable() (hanging *net.TCPListener, refusing string, err error) {
	var listeners [2]*net.TCPListener
	for i := range listeners {
		if listeners[i], err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			return nil, "", fmt.Errorf("find a free port: %w", err)
		}
	}
	return listeners[0], listeners[1].Addr().String(), listeners[1].Close()
}

// Connected reports whether something has connected to the listener since the last call.
func Connected(listener *net.TCPListener) bool {
	if err := listener.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	connection, err := listener.Accept()
	if err != nil {
		return false
	}
	_ = connection.Close() // nothing was written
	return true
}
