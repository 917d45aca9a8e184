package shoot

import (
	"context"
	"fmt"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// Name is the name of the webhook.
	Name = "validator"
	// Path is the path of the webhook.
	Path = "/webhooks/validate"
	// timeoutSeconds is long enough for slow reads, but below the usual request timeout of 30 seconds.
	timeoutSeconds = 10
)

// New returns the webhook that validates Shoots with the extension. Gardener's ExtensionLabels
// plugin labels these Shoots extensions.extensions.gardener.cloud/registry-cache=true. The API
// server calls the webhook if the old or the new Shoot has the label.
//
// If the webhook cannot be called, the Shoot is accepted (failure policy Ignore). An outage must
// not block updates that have nothing to do with caches, such as those of gardenlet, or the
// deletion of a Shoot. The controller also validates Shoots, and changes nothing if one is invalid.
func New(mgr manager.Manager) (*extensionswebhook.Webhook, error) {
	webhook, err := extensionswebhook.New(mgr, extensionswebhook.Args{
		Name:   Name,
		Path:   Path,
		Target: extensionswebhook.TargetSeed, // the cluster of the manager's client
		ObjectSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{v1beta1constants.LabelExtensionExtensionTypePrefix + v1alpha3.ExtensionType: "true"},
		},
		Validators: map[extensionswebhook.Validator][]extensionswebhook.Type{
			NewValidator(mgr.GetAPIReader()): {{Obj: &gardencorev1beta1.Shoot{}}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("create the webhook for Shoots: %w", err)
	}
	webhook.FailurePolicy = new(admissionregistrationv1.Ignore) // the library's default is Fail
	webhook.TimeoutSeconds = new(int32(timeoutSeconds))
	return webhook, nil
}

// validator adapts Check to the extension library.
type validator struct{ secrets Secrets }

// NewValidator returns a validator that gets Secrets one by one from reader. The reader should not
// be the manager's cache, which would contain every Secret of the garden, and might be outdated.
func NewValidator(reader client.Reader) extensionswebhook.Validator {
	return &validator{secrets: func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		if err := reader.Get(ctx, key, secret); err != nil {
			return nil, err
		}
		return secret, nil
	}}
}

// Validate implements extensionswebhook.Validator. The error contains all errors of Check.
func (v *validator) Validate(ctx context.Context, newObject, oldObject client.Object) error {
	shoot, ok := newObject.(*gardencorev1beta1.Shoot)
	if !ok {
		return fmt.Errorf("validate a %T: only a Shoot can be validated", newObject)
	}
	var old *gardencorev1beta1.Shoot
	if oldObject != nil {
		if old, ok = oldObject.(*gardencorev1beta1.Shoot); !ok {
			return fmt.Errorf("cannot compare with a %T, only with a Shoot", oldObject)
		}
	}
	return Check(ctx, shoot, old, v.secrets).ToAggregate()
}
