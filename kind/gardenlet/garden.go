package gardenlet

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PutSecret creates an immutable Secret in the shoot's project namespace of the garden. One of that name is replaced, as if
// a user had deleted and created it. WithSecret lets a shoot refer to it; the next flow brings it into the seed.
func (g *Gardenlet) PutSecret(ctx context.Context, name string, data map[string][]byte) error {
	return g.StoreSecret(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Type:       corev1.SecretTypeOpaque,
		Immutable:  ptr.To(true),
		Data:       data,
	})
}

// StoreSecret is PutSecret for a Secret that a user has written, whatever its namespace: name, labels, annotations, type,
// immutability and data are kept.
func (g *Gardenlet) StoreSecret(ctx context.Context, wanted *corev1.Secret) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ProjectNamespace, Name: wanted.Name, Labels: wanted.Labels, Annotations: wanted.Annotations,
		},
		Type:      wanted.Type,
		Immutable: wanted.Immutable,
		Data:      wanted.Data,
	}
	if err := g.RemoveSecret(ctx, secret.Name); err != nil {
		return err
	}
	if err := g.Garden.Create(ctx, secret); err != nil {
		return fmt.Errorf("create secret %s in the garden: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// RemoveSecret deletes the Secret from the garden; one that is not there is no error.
func (g *Gardenlet) RemoveSecret(ctx context.Context, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ProjectNamespace, Name: name}}
	if err := g.Garden.Delete(ctx, secret); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete secret %s from the garden: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// WithSecret adds the Secret of the garden to the shoot's spec.resources, under the given name, which is what an extension's
// providerConfig refers to. A resource of that name is replaced.
func WithSecret(shoot *gardencorev1beta1.Shoot, resource, secret string) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	reference := gardencorev1beta1.NamedResourceReference{
		Name:        resource,
		ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret},
	}
	for i := range shoot.Spec.Resources {
		if shoot.Spec.Resources[i].Name == resource {
			shoot.Spec.Resources[i] = reference
			return shoot
		}
	}
	shoot.Spec.Resources = append(shoot.Spec.Resources, reference)
	return shoot
}
