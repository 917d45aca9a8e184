//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// flipTimeout bounds the time in which HTTPS goes on and off again.
const flipTimeout = 10 * time.Second

// tlsFlip proves that HTTPS goes on and off again, faster than nodes follow, without a pull that fails or takes long.
func tlsFlip() scenario {
	var (
		pulls  *stream
		before string
		start  time.Time
		off    *background
	)
	return newScenario("tls-flip",
		step{"alpha and beta are cached", func(ctx context.Context, p *scenarioRun) {
			cached(alpha, beta)(ctx, p)
			before = p.Endpoints(ctx)[alpha]
			pulls = pullContinuously(ctx, p, alpha)
		}},
		step{"HTTPS goes on, and machines are about to hear of it", func(ctx context.Context, p *scenarioRun) {
			start = time.Now()
			on := p.Background(ctx, func(ctx context.Context) error { return reconcileConfig(ctx, p, tlsCache(alpha), operate.CacheOf(beta)) })
			p.awaitTold(ctx, start, on, strings.Replace(before, "http://", "https://", 1))
			on.end() // gardenlet would wait for the nodes
		}},
		step{"it goes off again, in time", func(ctx context.Context, p *scenarioRun) {
			off = p.Background(ctx, func(ctx context.Context) error { return reconcile(ctx, p, alpha, beta) })
			p.awaitTold(ctx, start, off, before)
			took := time.Since(start)
			if took > flipTimeout {
				p.Fatalf("on and off took %s, more than %s", seconds(took), flipTimeout)
			}
			p.Evidence("on and off in %s", seconds(took))
		}},
		step{"no pull failed or took long", func(ctx context.Context, p *scenarioRun) {
			p.Join(ctx, off, reconciled(alpha, beta), reconcileTimeout)
			p.AwaitCaches(ctx, alpha, beta)
			p.AwaitMirrors(ctx, alpha, beta)
			pulls.end(p, alpha, maxPull)
		}},
		step{"all is as before", func(ctx context.Context, p *scenarioRun) {
			if after := p.Endpoints(ctx)[alpha]; after != before {
				p.Errorf("the endpoint was %s, is %s", before, after)
			}
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, alpha); strings.Contains(hosts, "CERTIFICATE") || strings.Contains(hosts, "https://10.") {
					p.Errorf("hosts.toml on %s still is the one for HTTPS:\n%s", worker.Name(), hosts)
				}
				img := p.Push(ctx, alpha)
				p.TimedPull(ctx, worker, img)
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			p.Evidence("a hit on every worker by %s", before)
		}},
	)
}

// awaitTold waits, while a flow of gardenlet runs, until the Extension is reconciled with the endpoint of alpha, and the
// OperatingSystemConfigs, from which the machines hear of it, have it and no other. What is left of flipTimeout is the limit.
func (p *scenarioRun) awaitTold(ctx context.Context, start time.Time, flow *background, endpoint string) {
	p.Helper()
	what := "machines are told of " + endpoint
	p.Await(ctx, what, time.Until(start.Add(flipTimeout)), func(ctx context.Context) (bool, string, error) {
		extension, err := getExtension(ctx, p)
		if err != nil {
			return false, "", err
		}
		if status := extension.Status.ProviderStatus; stateOf(extension) != gardencorev1beta1.LastOperationStateSucceeded ||
			status == nil || !strings.Contains(string(status.Raw), `"`+endpoint+`"`) {
			return false, fmt.Sprintf("the Extension is %s", stateOf(extension)), flow.failed()
		}
		configs := &extensionsv1alpha1.OperatingSystemConfigList{}
		if err := p.suite.seed.List(ctx, configs, client.InNamespace(shootNamespace)); err != nil {
			return false, "", err
		}
		for _, config := range configs.Items {
			if config.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeReconcile && !hasEndpoint(config, endpoint) {
				return false, fmt.Sprintf("OperatingSystemConfig %s has another endpoint", config.Name), flow.failed()
			}
		}
		return len(configs.Items) > 0, "there is no OperatingSystemConfig", flow.failed()
	})
}

// hasEndpoint says whether a unit of the OperatingSystemConfig has the endpoint.
func hasEndpoint(config extensionsv1alpha1.OperatingSystemConfig, endpoint string) bool {
	for _, unit := range config.Spec.Units {
		if unit.Content != nil && strings.Contains(*unit.Content, endpoint) {
			return true
		}
	}
	return false
}
