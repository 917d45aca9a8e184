//go:build e2e

package nodeless

import (
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// refusedDeletion proves that only one cache is affected if a policy in the shoot refuses the
// deletion of its claim: the reconciliation succeeds, another cache is created, and a condition
// names the claim.
func refusedDeletion() rig.Scenario {
	replicated := cachetest.Cache(rig.Alpha)
	replicated.HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
	return rig.New("refused-deletion",
		rig.Prove("alpha has two replicas, and a policy refuses the deletion of claims", func(ctx context.Context, p *rig.Run) {
			configure(ctx, p, nil, replicated)
			keepClaims(ctx, p)
		}),

		rig.Prove("without the second replica, the reconciliation succeeds and creates beta", func(ctx context.Context, p *rig.Run) {
			configure(ctx, p, nil, cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta))
			second := p.Claims(ctx, rig.Alpha)
			if len(second) != 2 {
				p.Fatalf("alpha has the claims %v: the policy did not refuse the deletion, so this proves nothing", second)
			}
			awaitComplaint(ctx, p, "-1")
			p.Evidence("deletion of a claim refused: Succeeded, beta has an endpoint, a condition names the claim")
		}),

		rig.Prove("without the policy the claim is deleted", func(ctx context.Context, p *rig.Run) {
			p.Check(removePolicy(ctx, p))
			p.Await(ctx, "claims can be deleted again", time.Minute, func(ctx context.Context) (bool, string, error) {
				err := dryDelete(ctx, p)
				return err == nil, fmt.Sprint(err), nil
			})
			configure(ctx, p, nil, cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta))
			p.Await(ctx, "alpha has one claim", time.Minute, func(ctx context.Context) (bool, string, error) {
				claims := p.Claims(ctx, rig.Alpha)
				return len(claims) == 1, fmt.Sprint(claims), nil
			})
			if state := rig.StateOf(p.Extension(ctx)); state != gardencorev1beta1.LastOperationStateSucceeded {
				p.Fatalf("the Extension is %s", state)
			}
		}),
	)
}

const keepPolicy = "e2e-keep-claims"

// keepClaims creates a policy that refuses the deletion of alpha's claims until the scenario ends.
func keepClaims(ctx context.Context, p *rig.Run) {
	p.Helper()
	p.Afterwards(ctx, func(ctx context.Context) error { return removePolicy(ctx, p) })
	meta := metav1.ObjectMeta{Name: keepPolicy}
	p.Check(p.Session.Shoot.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha3.LabelUpstreamHost: rig.Alpha}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumeclaims"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "the owner keeps volumes"}},
		},
	}))
	p.Check(p.Session.Shoot.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: keepPolicy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}))
	p.Await(ctx, "the API server refuses to delete a claim", time.Minute, func(ctx context.Context) (bool, string, error) {
		return dryDelete(ctx, p) != nil, "it does not", nil
	})
}

// dryDelete returns an error if alpha's first claim cannot be deleted. It deletes nothing: the
// request is a dry run.
func dryDelete(ctx context.Context, p *rig.Run) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: p.Claims(ctx, rig.Alpha)[0],
	}}
	return p.Session.Shoot.Delete(ctx, claim, client.DryRunAll)
}

func removePolicy(ctx context.Context, p *rig.Run) error {
	meta := metav1.ObjectMeta{Name: keepPolicy}
	for _, object := range []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta},
	} {
		if err := p.Session.Shoot.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the policy that keeps claims: %w", err)
		}
	}
	return nil
}
