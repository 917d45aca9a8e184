//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const refusalPolicy = "e2e-refuse-service"

// refuseService makes the shoot's API server refuse the Service of an upstream, as a policy or a quota of a user would.
// It returns when the refusal is in force. allowServices ends it, and so does the end of the scenario.
func refuseService(ctx context.Context, p *proof, host string) {
	p.Helper()
	policy, binding := refusalObjects(host)
	p.Afterwards(ctx, allowServices)
	p.Check(suite.shoot.Create(ctx, policy))
	p.Check(suite.shoot.Create(ctx, binding))
	p.Await(ctx, "the API server refuses the Service", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		probe := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "e2e-probe-", Namespace: metav1.NamespaceSystem,
				Annotations: map[string]string{v1alpha3.AnnotationUpstream: host}, Labels: map[string]string{upstreamHostLabel: host},
			},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5000}}},
		}
		err := suite.shoot.Create(ctx, probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), refusal), fmt.Sprintf("answer to a dry run: %v", err), nil
	})
}

// allowServices ends the refusal, if there is one.
func allowServices(ctx context.Context) error {
	policy, binding := refusalObjects("")
	return errors.Join(
		client.IgnoreNotFound(suite.shoot.Delete(ctx, binding)),
		client.IgnoreNotFound(suite.shoot.Delete(ctx, policy)),
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
					Expression: fmt.Sprintf(`!has(object.metadata.annotations) || !(%[1]q in object.metadata.annotations) || `+
						`object.metadata.annotations[%[1]q] != %[2]q`, v1alpha3.AnnotationUpstream, host),
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
