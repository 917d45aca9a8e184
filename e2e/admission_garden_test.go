//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
)

// admissionName is the name of the registration, the Deployment and the service account.
const admissionName = "gardener-extension-registry-cache-admission"

// gardenStandIn is the seed's API server in the place of the garden's, and a project's namespace there.
type gardenStandIn struct {
	access
	namespace string
	// private is the Shoot whose cache refers to a Secret.
	private *gardencorev1beta1.Shoot
}

// install returns when the API server asks the admission.
func (g *gardenStandIn) install(ctx context.Context, p *proof) {
	p.Check(suite.testbed.RemoveAdmission(ctx)) // of a run that was killed
	p.Afterwards(ctx, suite.testbed.RemoveAdmission)
	p.Check(suite.testbed.InstallAdmission(ctx))
	config := rest.CopyConfig(suite.seed.config)
	// controller-runtime would send types of Gardener as protobuf. For resources of a definition there is none, and the API
	// server (1.36, crdHandler) panics instead of saying so.
	config.ContentType, config.QPS = runtime.ContentTypeJSON, -1
	var err error
	g.access, err = connect(config, kubernetes.GardenScheme)
	p.Check(err)

	project := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "garden-e2e-"}}
	p.Check(g.Create(ctx, project))
	g.namespace = project.Name
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(g.Delete(ctx, project)) })

	registration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	p.Check(g.Get(ctx, client.ObjectKey{Name: admissionName}, registration))
	if len(registration.Webhooks) != 1 || ptr.Deref(registration.Webhooks[0].FailurePolicy, "") != admissionregistrationv1.Fail {
		p.Fatalf("want one webhook that nobody gets around: %+v", registration.Webhooks)
	}
	g.awaitAnswer(ctx, p, "denied the request")
}

// awaitAnswer waits until the creation of a Shoot with a bad config ends like that; API servers learn of a registration, and
// of its end, with a delay. Empty: until it succeeds.
func (g *gardenStandIn) awaitAnswer(ctx context.Context, p *proof, answer string) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("a bad Shoot is answered by %q", answer), 30*time.Second, func(ctx context.Context) (bool, string, error) {
		err := g.Create(ctx, g.shoot(p, "probe", configuredAs(badConfigs[0].caches)), client.DryRunAll)
		if answer == "" {
			return err == nil, fmt.Sprint(err), nil
		}
		return err != nil && strings.Contains(err.Error(), answer), fmt.Sprint(err), nil
	})
}

// failsClosed stops all replicas.
func (g *gardenStandIn) failsClosed(ctx context.Context, p *proof) {
	admission := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kind.AdmissionNamespace, Name: admissionName}}
	p.Check(g.Patch(ctx, admission, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))))
	p.Await(ctx, "no replica is left", time.Minute, func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		err := g.List(ctx, pods, client.InNamespace(kind.AdmissionNamespace))
		return len(pods.Items) == 0, fmt.Sprintf("%d pods", len(pods.Items)), err
	})
	g.awaitAnswer(ctx, p, "failed calling webhook")
	other := g.shoot(p, "other")
	other.Labels = nil
	p.Check(g.Create(ctx, other, client.DryRunAll))
	p.Evidence("without a replica: refused with caches, accepted without")
}

// goes removes the namespace, as docs/admission.md tells, and nothing else.
func (g *gardenStandIn) goes(ctx context.Context, p *proof) {
	p.Check(g.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kind.AdmissionNamespace}}))
	p.Await(ctx, "the registration is gone", time.Minute, func(ctx context.Context) (bool, string, error) {
		err := g.Get(ctx, client.ObjectKey{Name: admissionName}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
		return apierrors.IsNotFound(err), "it is there", client.IgnoreNotFound(err)
	})
	g.awaitAnswer(ctx, p, "")
	p.Evidence("gone with its namespace: nothing is refused any more")
}
