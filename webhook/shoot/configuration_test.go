package shoot_test

import (
	"testing"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/webhook/shoot"
)

func TestWebhookConfiguration(t *testing.T) {
	webhook := newWebhook(t)
	if got := webhook.ObjectSelector.MatchLabels["extensions.extensions.gardener.cloud/registry-cache"]; got != "true" {
		t.Errorf("the selector is %v", webhook.ObjectSelector)
	}
	if webhook.Action != extensionswebhook.ActionValidating || webhook.Target != extensionswebhook.TargetSeed {
		t.Errorf("action %s, target %s", webhook.Action, webhook.Target)
	}
	if webhook.FailurePolicy == nil || *webhook.FailurePolicy != admissionregistrationv1.Ignore {
		t.Errorf("failure policy %v: without a replica, no Shoot with caches could be changed", webhook.FailurePolicy)
	}
	if webhook.TimeoutSeconds == nil || *webhook.TimeoutSeconds > 10 {
		t.Errorf("the API server waits %v seconds", webhook.TimeoutSeconds)
	}
}

func TestValidatorRejectsOtherObjects(t *testing.T) {
	validator := shoot.NewValidator(nil)
	if err := validator.Validate(t.Context(), &corev1.Secret{}, nil); err == nil {
		t.Error("a Secret is accepted")
	}
	if err := validator.Validate(t.Context(), withConfig(plain), &corev1.Secret{}); err == nil {
		t.Error("a Secret is accepted as the old Shoot")
	}
}
