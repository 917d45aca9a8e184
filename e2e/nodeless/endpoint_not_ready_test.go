//go:build e2e

package nodeless

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// wantedFailures is the number of failed attempts to wait for. Two prove a retry; because of the
// backoff, each further one takes longer.
const wantedFailures = 2

// endpointNotReady proves that the Extension reports why a cache has no Service, and recovers once
// the Service can be created.
func endpointNotReady() rig.Scenario {
	var (
		history *rig.Recording
		flow    *rig.Background
	)
	return rig.New("endpoint-not-ready",
		rig.Prove("alpha and beta are cached", cached(rig.Alpha, rig.Beta)),
		rig.Prove("gamma is added, but its Service is refused", func(ctx context.Context, p *rig.Run) {
			refuseService(ctx, p, rig.Gamma)
			history = p.Record(ctx, p.Session.Seed, extensionsv1alpha1.SchemeGroupVersion.WithResource("extensions"), p.Session.Namespace())
			flow = p.Background(ctx, func(ctx context.Context) error { return rig.Reconcile(ctx, p, rig.Alpha, rig.Beta, rig.Gamma) })
		}),

		rig.Prove("the Extension reports the cause and retries", func(ctx context.Context, p *rig.Run) {
			failures := awaitFailures(ctx, p, history, wantedFailures)
			last := failures[len(failures)-1]
			for _, part := range []string{rig.Gamma, refusal} {
				if !strings.Contains(last.Status.LastError.Description, part) {
					p.Errorf("lastError does not contain %q: %s", part, last.Status.LastError.Description)
				}
			}
			if services := p.Services(ctx); services[rig.Gamma].Name != "" {
				p.Errorf("the Service of gamma exists although it is refused")
			}
			if p.Failed() {
				p.FailNow()
			}
			p.Evidence("%d failed attempts, lastError names %s and the cause", len(failures), rig.Label(rig.Gamma))
		}),

		rig.Prove("once the Service can be created, the Extension is Succeeded", func(ctx context.Context, p *rig.Run) {
			p.Check(allowServices(ctx, p))
			p.Join(ctx, flow, rig.Reconciled(rig.Alpha, rig.Beta, rig.Gamma), rig.ReconcileTimeout)
			if state := rig.StateOf(p.Extension(ctx)); state != gardencorev1beta1.LastOperationStateSucceeded {
				p.Fatalf("the Extension is %s, want Succeeded", state)
			}
		}),

		rig.Prove("the status contains the Services' cluster IPs", func(ctx context.Context, p *rig.Run) {
			proveEndpoints(ctx, p, rig.Alpha, rig.Beta, rig.Gamma)
			p.Evidence("then Succeeded, 3 endpoints equal the Services' cluster IPs")
		}),
	)
}

// awaitFailures waits until the Extension's state has changed to Error at least the wanted number
// of times. It returns a copy of the Extension for each change to Error, see failuresIn.
func awaitFailures(ctx context.Context, p *rig.Run, history *rig.Recording, wanted int) []*extensionsv1alpha1.Extension {
	p.Helper()
	var failures []*extensionsv1alpha1.Extension
	p.Await(ctx, fmt.Sprintf("the Extension went into Error %d times", wanted), 90*time.Second,
		func(context.Context) (bool, string, error) {
			events, err := history.Events()
			if err != nil {
				return false, "", err
			}
			failures, err = failuresIn(events)
			return len(failures) >= wanted, fmt.Sprintf("%d times in %d events", len(failures), len(events)), err
		})
	return failures
}

// failuresIn returns, for each failed attempt, the Extension right after its state changed to
// Error.
func failuresIn(events []rig.Event) ([]*extensionsv1alpha1.Extension, error) {
	var failures []*extensionsv1alpha1.Extension
	var before gardencorev1beta1.LastOperationState
	for _, event := range rig.SelectEvents(events, rig.Named(v1alpha3.ExtensionType)) {
		extension := &extensionsv1alpha1.Extension{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(event.Object.Object, extension); err != nil {
			return nil, fmt.Errorf("read an Extension: %w", err)
		}
		state := rig.StateOf(extension)
		if state == gardencorev1beta1.LastOperationStateError && before != state && extension.Status.LastError != nil {
			failures = append(failures, extension)
		}
		before = state
	}
	return failures, nil
}

// refusal is the message with which the shoot's API server rejects gamma's Service. The Extension
// must report it as the cause.
const refusal = "e2e refuses the Service of gamma"

// refuseService creates a policy with which the shoot's API server rejects the Service of an
// upstream, as a user's policy or quota would, and waits until the policy is active. The policy
// lasts until allowServices is called or the scenario ends.
func refuseService(ctx context.Context, p *rig.Run, host string) {
	p.Helper()
	policy, binding := refusalObjects(host)
	p.Afterwards(ctx, func(ctx context.Context) error { return allowServices(ctx, p) })
	p.Check(p.Session.Shoot.Create(ctx, policy))
	p.Check(p.Session.Shoot.Create(ctx, binding))
	p.Await(ctx, "the API server refuses the Service", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		probe := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "e2e-probe-", Namespace: metav1.NamespaceSystem,
				Annotations: map[string]string{"upstream": host}, Labels: map[string]string{v1alpha3.LabelUpstreamHost: host},
			},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5000}}},
		}
		err := p.Session.Shoot.Create(ctx, probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), refusal), fmt.Sprintf("answer to a dry run: %v", err), nil
	})
}

func refusalObjects(host string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	meta := metav1.ObjectMeta{Name: refusalPolicy}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
							Rule: admissionregistrationv1.Rule{
								APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"},
							},
						},
					}},
				},
				Validations: []admissionregistrationv1.Validation{{
					Expression: fmt.Sprintf(`!has(object.metadata.annotations) || !("upstream" in object.metadata.annotations) || `+
						`object.metadata.annotations["upstream"] != %q`, host),
					Message: refusal,
				}},
			},
		}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        refusalPolicy,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}
}

// refusalPolicy names the ValidatingAdmissionPolicy that makes the shoot's API server reject
// Services.
const refusalPolicy = "e2e-refuse-service"

// allowServices deletes the refusalPolicy, if it exists.
func allowServices(ctx context.Context, p *rig.Run) error {
	meta := metav1.ObjectMeta{Name: refusalPolicy}
	return errors.Join(
		client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta})),
		client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta})),
	)
}
