//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/operate"
)

// interruptedTimeout is what an operation of the extension may take that is killed once on its way.
const interruptedTimeout = 90 * time.Second

// interrupted proves that the extension, killed without a chance to clean up, goes on where it was: when it cleans the
// nodes of beta, when it adds a cache with HTTPS, which takes several steps, and when it is disabled. The cleaner never
// stays. gardener-node-agent is held all the time, so what is gone from a node the cleaner took off.
func interrupted() scenario {
	var release func(context.Context) error
	var flow *background
	return newScenario("interrupted",
		step{"alpha and beta are cached", cached(alpha, beta)},
		step{"its process is killed while the nodes are cleaned of beta", func(ctx context.Context, p *scenarioRun) {
			release = p.HoldNodeAgents(ctx)
			flow = p.Background(ctx, func(ctx context.Context) error { return reconcileConfig(ctx, p, operate.CacheOf(alpha), tlsCache(gamma)) })
			p.awaitCleaner(ctx, flow)
			p.interrupt(ctx, killProcess)
		}},
		step{"its pod is deleted when gamma's cache has a Service and no certificate yet", func(ctx context.Context, p *scenarioRun) {
			p.Await(ctx, "gamma's Service is there", interruptedTimeout, func(ctx context.Context) (bool, string, error) {
				_, there := p.Services(ctx)[gamma]
				return there, "it is not", flow.failed()
			})
			p.interrupt(ctx, deletePod)
		}},
		step{"the Extension is reconciled all the same", func(ctx context.Context, p *scenarioRun) {
			p.Await(ctx, "the Extension has gamma, and not beta", interruptedTimeout, func(ctx context.Context) (bool, string, error) {
				extension, err := getExtension(ctx, p)
				if err != nil {
					return false, "", err
				}
				status := extension.Status.ProviderStatus
				done := stateOf(extension) == gardencorev1beta1.LastOperationStateSucceeded && status != nil &&
					!strings.Contains(string(status.Raw), beta) && strings.Contains(string(status.Raw), gamma)
				return done, fmt.Sprint(stateOf(extension)), flow.failed()
			})
			flow.end() // it waits for the nodes' agents, which are held
			if endpoint := p.Endpoints(ctx)[gamma]; !strings.HasPrefix(endpoint, "https://") {
				p.Errorf("gamma's endpoint is %q", endpoint)
			}
			p.AwaitCaches(ctx, alpha, gamma)
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, beta); !isAbsent(hosts) {
					p.Errorf("beta's hosts.toml is on %s:\n%s", worker.Name(), hosts)
				}
			}
			p.NoCleanerLeft(ctx)
		}},
		step{"its process is killed while it is disabled", func(ctx context.Context, p *scenarioRun) {
			flow = p.Background(ctx, func(ctx context.Context) error { return reconcile(ctx, p) })
			p.awaitCleaner(ctx, flow)
			p.interrupt(ctx, killProcess)
			p.Await(ctx, "the Extension is gone", interruptedTimeout, func(ctx context.Context) (bool, string, error) {
				extension := &extensionsv1alpha1.Extension{}
				err := p.suite.seed.Get(ctx, client.ObjectKey{Namespace: shootNamespace, Name: extensionName}, extension)
				if apierrors.IsNotFound(err) {
					return true, "", nil
				}
				return false, fmt.Sprint(stateOf(extension)), err
			})
			proveCleanWorkers(ctx, p)
			proveNothingDeployed(ctx, p)
			p.NoCleanerLeft(ctx)
		}},
		step{"gardenlet's flow comes to its end too", func(ctx context.Context, p *scenarioRun) {
			p.Check(release(ctx))
			p.Join(ctx, flow, reconciled(), reconcileTimeout)
			proveNothingOnWorkers(ctx, p)
			p.Evidence("killed 3 times: each operation came to its end, nodes clean")
		}},
	)
}

// awaitCleaner returns when the cleaner is in the shoot: from then on nodes are being cleaned.
func (p *scenarioRun) awaitCleaner(ctx context.Context, flow *background) {
	p.Helper()
	p.Await(ctx, "the cleaner is in the shoot", time.Minute, func(ctx context.Context) (bool, string, error) {
		err := p.suite.shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: cleanerDaemonSet}, &appsv1.DaemonSet{})
		if apierrors.IsNotFound(err) {
			return false, "", flow.failed()
		}
		return err == nil, "", err
	})
}
