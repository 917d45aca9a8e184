package gardener

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestWaitForRegistration(t *testing.T) {
	named := metav1.ObjectMeta{Name: "one"}
	with := admissionregistrationv1.WebhookClientConfig{CABundle: []byte("ca")}
	for name, test := range map[string]struct {
		present, wanted client.Object
		failure         string
		took            time.Duration
	}{
		"registered": {
			present: &admissionregistrationv1.MutatingWebhookConfiguration{
				ObjectMeta: named, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "one", ClientConfig: with}},
			},
			wanted: &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named},
		},
		"without CA bundle": {
			present: &admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: named, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "one"}},
			},
			wanted:  &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named},
			failure: "no CA bundle", took: registrationTimeout,
		},
		"not there": {
			present: &corev1.Namespace{ObjectMeta: named},
			wanted:  &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named},
			failure: "not found", took: registrationTimeout,
		},
		"no webhook configuration": {
			present: &corev1.Namespace{ObjectMeta: named}, wanted: &corev1.Namespace{ObjectMeta: named}, failure: "unexpected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(test.present).Build()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				err := WaitForRegistration(ctx, reader, test.wanted)
				if took := time.Since(start); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
					t.Errorf("error %v, want one that says %q", err, test.failure)
				}
			})
		})
	}
}

// TestWaitForDeployment: conditions and observedGeneration alone do not show that a Deployment has
// rolled out when it goes back to an earlier template.
func TestWaitForDeployment(t *testing.T) {
	for name, test := range map[string]struct {
		replicas, updated int32
		failure           string
	}{
		"rolled out":                      {1, 1, ""},
		"the old pod is still counted":    {2, 1, "1 of 2 replicas are updated"},
		"only the old pod is counted yet": {1, 0, "0 of 1 replicas are updated"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "one", Generation: 3},
				Status: appsv1.DeploymentStatus{
					ObservedGeneration: 3, Replicas: test.replicas, UpdatedReplicas: test.updated, AvailableReplicas: 1,
					Conditions: []appsv1.DeploymentCondition{
						{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
						{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
					},
				},
			}
			reader := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(deployment).Build()
			synctest.Test(t, func(t *testing.T) {
				err := WaitForDeployment(t.Context(), reader, client.ObjectKeyFromObject(deployment))
				if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
					t.Errorf("error %v, want one that says %q", err, test.failure)
				}
			})
		})
	}
}
