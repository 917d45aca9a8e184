//go:build e2e

package rig

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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusal is the message of the shoot's API server while it refuses gamma's Service: the cause that a user must see.
const Refusal = "e2e refuses the Service of gamma"

func StateOf(extension *extensionsv1alpha1.Extension) gardencorev1beta1.LastOperationState {
	if extension.Status.LastOperation == nil {
		return ""
	}
	return extension.Status.LastOperation.State
}

const refusalPolicy = "e2e-refuse-service"

// refuseService makes the shoot's API server refuse the Service of an upstream, as a policy or a quota of a user would.
// It returns when the refusal is in force. allowServices ends it, and so does the end of the scenario.
func RefuseService(ctx context.Context, p *Run, host string) {
	p.Helper()
	policy, binding := refusalObjects(host)
	p.Afterwards(ctx, func(ctx context.Context) error { return AllowServices(ctx, p) })
	p.Check(p.Session.Shoot.Create(ctx, policy))
	p.Check(p.Session.Shoot.Create(ctx, binding))
	p.Await(ctx, "the API server refuses the Service", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		probe := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "e2e-probe-", Namespace: metav1.NamespaceSystem,
				Annotations: map[string]string{"upstream": host}, Labels: map[string]string{UpstreamHostLabel: host},
			},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5000}}},
		}
		err := p.Session.Shoot.Create(ctx, probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), Refusal), fmt.Sprintf("answer to a dry run: %v", err), nil
	})
}

// allowServices ends the refusal, if there is one.
func AllowServices(ctx context.Context, p *Run) error {
	policy, binding := refusalObjects("")
	return errors.Join(
		client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, binding)),
		client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, policy)),
	)
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
					Message: Refusal,
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
