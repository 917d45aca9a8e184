package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/retry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

const (
	// healInterval is the time between two looks whether a Service is back.
	healInterval = 200 * time.Millisecond
	// healTimeout bounds how long that takes; gardener-resource-manager is asked for it.
	healTimeout = 30 * time.Second
)

// recreation is the fault RecreateService: the Service of a cache is deleted, and gardener-resource-manager makes it anew. It heals
// what is missing once a minute by itself; here it is asked at once.
type recreation struct {
	namespace   string // in the seed
	seed, shoot client.Client
	service     *corev1.Service
	// told is what came of it.
	told string
}

func recreateService(ctx context.Context, t *kind.Testbed, f spec.Fault) (injection, error) {
	service, err := cache.ServiceOf(ctx, t, f.Target.Name)
	if err != nil {
		return nil, err
	}
	seed, err := client.New(t.Seed.RESTConfig(), client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return nil, fmt.Errorf("client for the seed: %w", err)
	}
	shoot, err := client.New(t.Shoot.RESTConfig(), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("client for the shoot: %w", err)
	}
	return &recreation{namespace: gardenlet.Namespace(gardenlet.DefaultShoot), seed: seed, shoot: shoot, service: service}, nil
}

// Available says whether somebody is there to bring the Service back.
func (r *recreation) Available(ctx context.Context) error {
	manager := &appsv1.Deployment{}
	err := r.seed.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: v1beta1constants.DeploymentNameGardenerResourceManager}, manager)
	if apierrors.IsNotFound(err) || err == nil && manager.Status.ReadyReplicas == 0 {
		return errors.New("gardener-resource-manager does not run, which brings the Service back: the Shoot hibernates, or has left the seed")
	}
	return err
}

// Inject returns when the Service is there with another address. It deletes it again should it come back with the one of before.
func (r *recreation) Inject(ctx context.Context) error {
	before := r.service.Spec.ClusterIP
	for r.service.Spec.ClusterIP == before {
		if err := r.shoot.Delete(ctx, r.service, client.Preconditions{UID: &r.service.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the Service %s: %w", r.service.Name, err)
		}
		if err := r.awaitAnother(ctx); err != nil {
			return err
		}
	}
	r.told = fmt.Sprintf("%s, before that %s", r.service.Spec.ClusterIP, before)
	return nil
}

// Clear does nothing: without the Service gardener-resource-manager makes it anew, whatever happens to this process.
func (*recreation) Clear(context.Context) error { return nil }

func (r *recreation) outcome() string { return r.told }

// awaitAnother waits until a Service of the name, and not the one that was deleted, is there, and goes on with it.
func (r *recreation) awaitAnother(ctx context.Context) error {
	key, former := client.ObjectKeyFromObject(r.service), r.service.UID
	err := retry.UntilTimeout(ctx, healInterval, healTimeout, func(ctx context.Context) (bool, error) {
		service := &corev1.Service{}
		switch err := r.shoot.Get(ctx, key, service); {
		case apierrors.IsNotFound(err):
			return retry.MinorError(errors.Join(errors.New("it is not there"), r.ask(ctx)))
		case err != nil:
			return retry.MinorError(err)
		case service.UID == former:
			return retry.MinorError(errors.New("its deletion has not ended"))
		}
		r.service = service
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("gardener-resource-manager has not made the Service %s anew after %s: %w", key.Name, healTimeout, err)
	}
	return nil
}

// ask lets gardener-resource-manager compare the caches with what is there.
func (r *recreation) ask(ctx context.Context) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: v1alpha3.ManagedResourceCaches}}
	patch := client.MergeFrom(resource.DeepCopy())
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	if err := r.seed.Patch(ctx, resource, patch); err != nil {
		return fmt.Errorf("ask gardener-resource-manager: %w", err)
	}
	return nil
}
