package cachetest

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
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// How often and how long to check whether gardener-resource-manager has recreated the Service.
const recreateInterval, recreateTimeout = 200 * time.Millisecond, 30 * time.Second

// recreatedService deletes the Service of a cache. It annotates the ManagedResource, so that
// gardener-resource-manager recreates the Service at once and not only within a minute.
type recreatedService struct {
	namespace   string // in the seed
	seed, shoot client.Client
	service     *corev1.Service
	result      string // the new and the previous address, once Inject has succeeded
}

func prepareRecreation(ctx context.Context, t *kind.Testbed, f spec.Fault) (kind.Injection, error) {
	service, err := ServiceOf(ctx, t, f.Target.Name)
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
	r := &recreatedService{namespace: gardenlet.Namespace(gardenlet.DefaultShoot), seed: seed, shoot: shoot, service: service}
	if err := r.available(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Target, err)
	}
	return r, nil
}

// available returns an error if gardener-resource-manager does not run.
func (r *recreatedService) available(ctx context.Context) error {
	manager := &appsv1.Deployment{}
	err := r.seed.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: v1beta1constants.DeploymentNameGardenerResourceManager}, manager)
	if apierrors.IsNotFound(err) || err == nil && manager.Status.ReadyReplicas == 0 {
		return errors.New("gardener-resource-manager, which recreates the Service, does not run: the Shoot is hibernated, or has left the seed")
	}
	return err
}

// Inject deletes the Service, repeatedly if needed, until the new Service has another address.
func (r *recreatedService) Inject(ctx context.Context) error {
	before := r.service.Spec.ClusterIP
	for r.service.Spec.ClusterIP == before {
		if err := r.shoot.Delete(ctx, r.service, client.Preconditions{UID: &r.service.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the Service %s: %w", r.service.Name, err)
		}
		if err := r.awaitRecreated(ctx); err != nil {
			return err
		}
	}
	r.result = fmt.Sprintf("%s, previously %s", r.service.Spec.ClusterIP, before)
	return nil
}

// Clear does nothing, since gardener-resource-manager recreates a missing Service anyway.
func (*recreatedService) Clear(context.Context) error { return nil }

// Outcome returns the new and the previous address.
func (r *recreatedService) Outcome() string { return r.result }

// awaitRecreated waits for a Service with the same name and another UID, and sets r.service to it.
func (r *recreatedService) awaitRecreated(ctx context.Context) error {
	key, deleted := client.ObjectKeyFromObject(r.service), r.service.UID
	err := retry.UntilTimeout(ctx, recreateInterval, recreateTimeout, func(ctx context.Context) (bool, error) {
		service := &corev1.Service{}
		switch err := r.shoot.Get(ctx, key, service); {
		case apierrors.IsNotFound(err):
			return retry.MinorError(errors.Join(errors.New("not found"), r.triggerReconcile(ctx)))
		case err != nil:
			return retry.MinorError(err)
		case service.UID == deleted:
			return retry.MinorError(errors.New("its deletion has not finished"))
		}
		r.service = service
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("gardener-resource-manager has not recreated the Service %s within %s: %w", key.Name, recreateTimeout, err)
	}
	return nil
}

func (r *recreatedService) triggerReconcile(ctx context.Context) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: v1alpha3.ManagedResourceServices}}
	patch := client.MergeFrom(resource.DeepCopy())
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	if err := r.seed.Patch(ctx, resource, patch); err != nil {
		return fmt.Errorf("trigger gardener-resource-manager: %w", err)
	}
	return nil
}
