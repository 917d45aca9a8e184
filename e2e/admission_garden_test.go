//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// guardedGarden is the garden with the admission.
type guardedGarden struct {
	client.Client
	// unchecked is what countUnchecked returned right after the admission was installed.
	unchecked int
	// private is the Shoot whose cache refers to a Secret.
	private *gardencorev1beta1.Shoot
}

// install installs the admission and returns once the API server calls its webhook.
func (g *guardedGarden) install(ctx context.Context, p *rig.Run) {
	g.Client = garden(p)
	clean := func(ctx context.Context) error {
		return errors.Join(g.removeObjects(ctx), removeAdmission(ctx, p.Session.Testbed))
	}
	p.Check(clean(ctx)) // if an earlier run was killed
	p.Afterwards(ctx, clean)
	p.Check(installAdmission(ctx, p.Session.Testbed))
	g.awaitAnswer(ctx, p, "denied the request")
	g.unchecked = g.countUnchecked(ctx, p)
}

// objectLabels are the labels of the Shoots and Secrets of the scenario.
var objectLabels = client.MatchingLabels{"e2e.registry-cache.test/scenario": "admission"}

// removeObjects deletes the Shoots and Secrets with objectLabels.
func (g *guardedGarden) removeObjects(ctx context.Context) error {
	for _, list := range []client.ObjectList{&gardencorev1beta1.ShootList{}, &corev1.SecretList{}} {
		if err := g.List(ctx, list, client.InNamespace(gardenlet.ProjectNamespace), objectLabels); err != nil {
			return fmt.Errorf("list the objects of the scenario: %w", err)
		}
		err := meta.EachListItem(list, func(object runtime.Object) error { return g.removeProtected(ctx, object.(client.Object)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// removeProtected deletes a Shoot without a seed, or a Secret, and waits until it is gone.
// gardener-controller-manager adds a finalizer to a Secret to which a Shoot refers, and to this
// Shoot.
func (g *guardedGarden) removeProtected(ctx context.Context, object client.Object) error {
	release := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"finalizers":null,"annotations":{%q:"true"}}}`, v1beta1constants.ConfirmationDeletion))
	return rig.Await(ctx, object.GetName()+" is gone", time.Minute, func(ctx context.Context) (bool, string, error) {
		err := g.Patch(ctx, object, release)
		if err == nil {
			err = g.Delete(ctx, object)
		}
		return apierrors.IsNotFound(err), "it exists", client.IgnoreNotFound(err)
	})
}

// awaitAnswer repeats a dry run with a bad Shoot until the error contains the answer or, if the
// answer is "", until there is no error. API servers notice webhooks and endpoints with a delay.
func (g *guardedGarden) awaitAnswer(ctx context.Context, p *rig.Run, answer string) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("a bad Shoot is answered by %q", answer), 30*time.Second, func(ctx context.Context) (bool, string, error) {
		err := g.Create(ctx, g.shoot(p, "probe", configuredAs(rig.BadConfigs[0].Caches)), client.DryRunAll)
		if answer == "" {
			return err == nil, fmt.Sprint(err), nil
		}
		return err != nil && strings.Contains(err.Error(), answer), fmt.Sprint(err), nil
	})
}

// failsOpen proves that the webhook has answered every request so far. Then it stops all replicas
// of the admission and proves that the API server accepts bad Shoots.
func (g *guardedGarden) failsOpen(ctx context.Context, p *rig.Run) {
	if unchecked := g.countUnchecked(ctx, p); unchecked != g.unchecked {
		p.Fatalf("the webhook did not answer %d requests that the API server accepted, so accepted requests prove nothing", unchecked-g.unchecked)
	}
	p.Check(g.Patch(ctx, admissionDeployment(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))))
	p.Await(ctx, "no replica is left", time.Minute, func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		err := g.List(ctx, pods, client.InNamespace(cachetest.AdmissionRuntimeNamespace))
		return len(pods.Items) == 0, fmt.Sprintf("%d pods", len(pods.Items)), err
	})
	g.awaitAnswer(ctx, p, "")
	if g.countUnchecked(ctx, p) == g.unchecked {
		p.Fatalf("a bad Shoot was accepted, although the webhook answered")
	}
	p.Evidence("without a replica: accepted unchecked; with one, never")
}

// apiServerMetrics is the path of the metrics of gardener-apiserver at the seed's API server.
const apiServerMetrics = "/api/v1/namespaces/garden/services/https:gardener-apiserver:https/proxy/metrics"

// countUnchecked returns how many requests the API server has accepted because the webhook did not
// answer.
func (g *guardedGarden) countUnchecked(ctx context.Context, p *rig.Run) (requests int) {
	p.Helper()
	api, err := discovery.NewDiscoveryClientForConfig(p.Session.Seed.Config)
	p.Check(err)
	metrics, err := api.RESTClient().Get().AbsPath(apiServerMetrics).DoRaw(ctx)
	p.Check(err)
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "apiserver_admission_webhook_fail_open_count{") && strings.Contains(line, ".registry-cache-admission.") {
			count, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1 : len(line)-1])
			p.Check(err)
			requests += count
		}
	}
	return requests
}

// needsNoMore proves that no request of the admission was forbidden, neither in the garden nor in
// the runtime cluster.
func (g *guardedGarden) needsNoMore(ctx context.Context, p *rig.Run) {
	inGarden := serviceaccount.MakeUsername(cachetest.AdmissionNamespace, admissionName)
	plantForbidden(ctx, p, inGarden)
	requireNoneForbidden(ctx, p, inGarden, serviceaccount.MakeUsername(cachetest.AdmissionRuntimeNamespace, admissionName))
}

// uninstall deletes only the admission's namespace in the garden, as docs/admission.md describes.
func (g *guardedGarden) uninstall(ctx context.Context, p *rig.Run) {
	p.Check(g.Delete(ctx, namespaceObject(cachetest.AdmissionNamespace)))
	p.Await(ctx, "the webhook configuration is gone", time.Minute, func(ctx context.Context) (bool, string, error) {
		err := g.Get(ctx, client.ObjectKey{Name: admissionName}, admissionRegistration())
		return apierrors.IsNotFound(err), "it exists", client.IgnoreNotFound(err)
	})
	p.Evidence("the webhook configuration is deleted with its namespace")
}
