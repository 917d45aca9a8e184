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

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// flipTimeout bounds the total time to enable HTTPS and disable it again. Gardener spreads the
// configuration of nodes over five minutes.
const flipTimeout = 30 * time.Second

// tlsFlip proves that HTTPS can be enabled and disabled faster than nodes are reconfigured, without
// a failed or slow pull.
func tlsFlip() rig.Scenario {
	var (
		pulls  *stream
		before string
		start  time.Time
		off    *rig.Background
	)
	return rig.New("tls-flip",
		rig.Prove("alpha and beta are cached", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			before = p.Endpoints(ctx)[rig.Alpha]
			pulls = pullContinuously(ctx, p, rig.Alpha)
		}),

		rig.Prove("HTTPS is enabled, and machines are about to be configured", func(ctx context.Context, p *rig.Run) {
			start = time.Now()
			on := p.Background(ctx, func(ctx context.Context) error {
				return rig.ReconcileConfig(ctx, p, tlsCache(rig.Alpha), cachetest.Cache(rig.Beta))
			})
			awaitEndpoint(ctx, p, start, on, strings.Replace(before, "http://", "https://", 1))
			on.End()
		}),

		rig.Prove("HTTPS is disabled again, in time", func(ctx context.Context, p *rig.Run) {
			off = p.Background(ctx, func(ctx context.Context) error { return rig.Reconcile(ctx, p, rig.Alpha, rig.Beta) })
			awaitEndpoint(ctx, p, start, off, before)
			took := time.Since(start)
			if took > flipTimeout {
				p.Fatalf("on and off took %s, more than %s", rig.Seconds(took), flipTimeout)
			}
			p.Evidence("on and off in %s", rig.Seconds(took))
		}),

		rig.Prove("no pull failed or was slow", func(ctx context.Context, p *rig.Run) {
			p.Join(ctx, off, rig.Reconciled(rig.Alpha, rig.Beta), rig.ReconcileTimeout)
			p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			pulls.end(p, rig.Alpha, rig.MaxPull)
		}),

		rig.Prove("endpoint and nodes are as before", func(ctx context.Context, p *rig.Run) {
			if after := p.Endpoints(ctx)[rig.Alpha]; after != before {
				p.Errorf("the endpoint was %s, is %s", before, after)
			}
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, rig.Alpha); strings.Contains(hosts, "CERTIFICATE") || strings.Contains(hosts, "https://10.") {
					p.Errorf("hosts.toml on %s is still the one for HTTPS:\n%s", worker.Name(), hosts)
				}
				img := p.Push(ctx, rig.Alpha)
				p.TimedPull(ctx, worker, img)
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			p.Evidence("a hit on every worker with %s", before)
		}),

		rig.Prove("on, off, on without a pause, and off again: nodes follow, and no pull fails or is slow", proveFlips).InFullLane(),
	)
}

// maxFlipPull bounds a pull while its cache switches between HTTP and HTTPS. The cache restarts
// each time.
const maxFlipPull = 15 * time.Second

// proveFlips switches both caches between HTTP and HTTPS, and proves that containerd reports no
// certificate error for them.
func proveFlips(ctx context.Context, p *rig.Run) {
	since, err := p.Worker(0).Exec(ctx, "date", "+@%s") // all nodes use the clock of this machine
	p.Check(err)
	pulls := pullContinuously(ctx, p, rig.Alpha)
	flip := func(cache func(host string) v1alpha3.RegistryCache) {
		p.Check(rig.ReconcileConfig(ctx, p, cache(rig.Alpha), cache(rig.Beta)))
	}
	flip(tlsCache)
	flip(httpCache)
	flip(tlsCache)
	proveScheme(ctx, p, "https://")
	flip(httpCache)
	proveScheme(ctx, p, "http://")
	pulls.end(p, rig.Alpha, maxFlipPull)
	for _, worker := range p.Workers() {
		journal, err := worker.Exec(ctx, "journalctl", "--unit=containerd.service", "--since="+strings.TrimSpace(since), "--output=cat")
		p.Check(err)
		if !strings.Contains(journal, `msg="Pulled image `) {
			p.Fatalf("the journal of containerd on %s has no pull, so this proves nothing", worker.Name())
		}
		for line := range strings.Lines(journal) {
			// The address of a deleted pod can lead to a server outside the testbed, whose certificate
			// contains no IP addresses. Nodes would not use a cache with such a certificate.
			if strings.Contains(line, "x509") && !strings.Contains(line, "doesn't contain any IP SANs") {
				p.Errorf("containerd of %s reports: %s", worker.Name(), line)
			}
		}
	}
}

// proveScheme proves that both endpoints have the scheme, that nodes use them within a minute
// (rig.AppliedTimeout), and that new images of alpha soon come through the cache on every worker. A
// pod that is deleted in the milliseconds in which its process starts misses SIGTERM, since Linux
// drops signals that PID 1 does not handle yet: it is killed after its grace period of 30 seconds.
func proveScheme(ctx context.Context, p *rig.Run, scheme string) {
	p.Helper()
	start := time.Now()
	p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
	took := time.Since(start)
	for host, endpoint := range p.Endpoints(ctx) {
		if !strings.HasPrefix(endpoint, scheme) {
			p.Fatalf("nodes use %s for %s after %s, want %s", endpoint, host, rig.Seconds(took), scheme)
		}
	}
	start = time.Now()
	p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
	p.AwaitMirrors(ctx, rig.Alpha, rig.Beta) // the restart might have removed the mirrors for a moment
	p.Evidence("%s on all nodes after %s: %s", scheme, rig.Seconds(took), cachedWithin(ctx, p, rig.Alpha, start, restartedWithin))
}

// awaitEndpoint waits until the Extension is reconciled, and its status and every
// OperatingSystemConfig contain the endpoint. The scenario fails if gardenlet's flow fails, or if
// flipTimeout has passed since the start time.
func awaitEndpoint(ctx context.Context, p *rig.Run, start time.Time, flow *rig.Background, endpoint string) {
	p.Helper()
	what := "machines are configured with " + endpoint
	p.Await(ctx, what, time.Until(start.Add(flipTimeout)), func(ctx context.Context) (bool, string, error) {
		extension, err := rig.GetExtension(ctx, p)
		if err != nil {
			return false, "", err
		}
		if status := extension.Status.ProviderStatus; rig.StateOf(extension) != gardencorev1beta1.LastOperationStateSucceeded ||
			status == nil || !strings.Contains(string(status.Raw), `"`+endpoint+`"`) {
			return false, fmt.Sprintf("the Extension is %s", rig.StateOf(extension)), flow.Failed()
		}
		configs := &extensionsv1alpha1.OperatingSystemConfigList{}
		if err := p.Session.Seed.List(ctx, configs, client.InNamespace(rig.ShootNamespace)); err != nil {
			return false, "", err
		}
		for _, config := range configs.Items {
			if config.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeReconcile && !hasEndpoint(config, endpoint) {
				return false, fmt.Sprintf("OperatingSystemConfig %s has another endpoint", config.Name), flow.Failed()
			}
		}
		return len(configs.Items) > 0, "no OperatingSystemConfig found", flow.Failed()
	})
}

// hasEndpoint reports whether a unit of the OperatingSystemConfig contains the endpoint.
func hasEndpoint(config extensionsv1alpha1.OperatingSystemConfig, endpoint string) bool {
	for _, unit := range config.Spec.Units {
		if unit.Content != nil && strings.Contains(*unit.Content, endpoint) {
			return true
		}
	}
	return false
}
