//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// admissionName is the name of the webhook configuration, the Deployment and the service account.
const admissionName = "gardener-extension-registry-cache-admission"

// gardenStandIn is the seed's API server. In this scenario it stands in for the garden's API
// server, and contains a namespace for a project.
type gardenStandIn struct {
	rig.Access
	namespace string
	// unchecked is what countUnchecked returned right after the admission was installed.
	unchecked int
	// private is the Shoot whose cache refers to a Secret.
	private *gardencorev1beta1.Shoot
}

// install installs the admission and returns once the API server calls its webhook.
func (g *gardenStandIn) install(ctx context.Context, p *rig.Run) {
	p.Check(removeAdmission(ctx, p.Session.Testbed)) // if an earlier run was killed
	p.Afterwards(ctx, func(ctx context.Context) error { return removeAdmission(ctx, p.Session.Testbed) })
	p.Check(installAdmission(ctx, p.Session.Testbed))
	config := rest.CopyConfig(p.Session.Seed.Config)
	// controller-runtime would send Gardener's types as protobuf. Custom resources do not support
	// protobuf, and the API server (1.36, crdHandler) panics on such a request.
	config.ContentType, config.QPS = runtime.ContentTypeJSON, -1
	var err error
	g.Access, err = rig.Connect(config, kubernetes.GardenScheme)
	p.Check(err)

	project := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-e2e"}}
	p.Check(client.IgnoreNotFound(g.Delete(ctx, project))) // if an earlier run was killed
	p.Await(ctx, "a namespace for the project can be created", time.Minute, func(ctx context.Context) (bool, string, error) {
		err := g.Create(ctx, project)
		return err == nil, fmt.Sprint(err), client.IgnoreAlreadyExists(err)
	})
	g.namespace = project.Name
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(g.Delete(ctx, project)) })

	g.awaitAnswer(ctx, p, "denied the request")
	g.unchecked = g.countUnchecked(ctx, p)
}

// awaitAnswer repeats a dry run with a bad Shoot until the error contains the answer or, if the
// answer is "", until there is no error. API servers notice webhooks and endpoints with a delay.
func (g *gardenStandIn) awaitAnswer(ctx context.Context, p *rig.Run, answer string) {
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
func (g *gardenStandIn) failsOpen(ctx context.Context, p *rig.Run) {
	if unchecked := g.countUnchecked(ctx, p); unchecked != g.unchecked {
		p.Fatalf("the webhook did not answer %d requests that the API server accepted, so accepted requests prove nothing", unchecked-g.unchecked)
	}
	p.Check(g.Patch(ctx, admissionDeployment(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))))
	p.Await(ctx, "no replica is left", time.Minute, func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		err := g.List(ctx, pods, client.InNamespace(cachetest.AdmissionNamespace))
		return len(pods.Items) == 0, fmt.Sprintf("%d pods", len(pods.Items)), err
	})
	g.awaitAnswer(ctx, p, "")
	if g.countUnchecked(ctx, p) == g.unchecked {
		p.Fatalf("a bad Shoot was accepted, although the webhook answered")
	}
	p.Evidence("without a replica: accepted unchecked; with one, never")
}

// countUnchecked returns how many requests the API server has accepted because the webhook did not
// answer.
func (g *gardenStandIn) countUnchecked(ctx context.Context, p *rig.Run) (requests int) {
	p.Helper()
	api, err := discovery.NewDiscoveryClientForConfig(g.Config)
	p.Check(err)
	metrics, err := api.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
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

// uninstall deletes only the admission's namespace, as docs/admission.md describes.
func (g *gardenStandIn) uninstall(ctx context.Context, p *rig.Run) {
	p.Check(g.Delete(ctx, admissionNamespace()))
	p.Await(ctx, "the webhook configuration is gone", time.Minute, func(ctx context.Context) (bool, string, error) {
		err := g.Get(ctx, client.ObjectKey{Name: admissionName}, admissionRegistration())
		return apierrors.IsNotFound(err), "it exists", client.IgnoreNotFound(err)
	})
	p.Evidence("the webhook configuration is deleted with its namespace")
}
