//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// cacheFailure is a way in which a cache fails.
type cacheFailure struct {
	name  string
	host  string // the upstream of the cache
	begin func(ctx context.Context, p *rig.Run)
	// end removes the cause of the failure. After that, the nodes only need to notice that the cache
	// works again.
	end func(ctx context.Context, p *rig.Run)
	// evicts means that the cache deletes stored content to make room, so the images of later pulls
	// must be stored again.
	evicts bool
	// asker is the client that fetches images from the upstream during the failure. It requests each
	// blob at most gets times.
	asker accesslog.Asker
	gets  int
	// spares reports whether the worker can pull during the failure.
	spares func(ctx context.Context, p *rig.Run, worker *cluster.Node) bool
}

// httpCache returns the result of cachetest.Cache, changed to HTTP.
func httpCache(host string) v1alpha3.RegistryCache {
	cache := cachetest.Cache(host)
	cache.HTTP = &v1alpha3.HTTP{}
	return cache
}

// cachesThatFail returns the step that configures the caches of failures: alpha's speaks HTTP,
// beta's HTTPS.
func cachesThatFail() rig.Step {
	return rig.Prove("alpha is cached over HTTP, beta over HTTPS", rig.Configured(httpCache(rig.Alpha), tlsCache(rig.Beta)))
}

const packetsDropped = "packets are dropped"

// failures returns the ways in which caches fail.
func failures() []cacheFailure {
	all := []cacheFailure{scaledToZero(), serviceDeleted(), serviceRecreated()}
	for _, one := range []struct {
		name, target string
		kind         spec.Kind
		option       map[string][]string
	}{
		{packetsDropped, "cache/alpha", spec.Blackhole, nil},
		{"the process is stopped", "cache/alpha", spec.Stop, nil},
		{"500 to everything", "cache/alpha", spec.Status, map[string][]string{"status": {"500"}}},
		{"503 to everything", "cache/beta", spec.Status, map[string][]string{"status": {"503"}}},
		{"429 to everything", "cache/alpha", spec.Status, map[string][]string{"status": {"429"}}},
		{"the certificate has expired", "cache/beta", spec.ExpiredTLS, nil},
		{"the disk is full", "cache/alpha", spec.DiskFull, nil},
	} {
		f := cacheFailure{
			name: one.name, host: strings.TrimPrefix(one.target, "cache/") + ".upstream.test", asker: accesslog.AskerNode, gets: 1,
			begin:  func(ctx context.Context, p *rig.Run) { p.BreakWith(ctx, one.target, one.kind, one.option) },
			end:    clearFaults,
			spares: everyWorker,
		}
		if one.kind == spec.DiskFull {
			f.evicts = true
			f.asker, f.gets = accesslog.AskerCache, 2 // content for which there is no space passes through the cache
		}
		all = append(all, f)
	}
	return append(all, nodeGone())
}

// eachFailure returns a step for each failure, after one that configures the caches.
func eachFailure(prove func(ctx context.Context, p *rig.Run, f cacheFailure)) []rig.Step {
	steps := []rig.Step{cachesThatFail()}
	for _, f := range failures() {
		steps = append(steps, rig.Prove(f.name, func(ctx context.Context, p *rig.Run) { prove(ctx, p, f) }))
	}
	return steps
}

func clearFaults(ctx context.Context, p *rig.Run) { p.Check(rig.ClearFaults(ctx, p)) }

func everyWorker(context.Context, *rig.Run, *cluster.Node) bool { return true }

func scaledToZero() cacheFailure {
	return cacheFailure{
		name: "scaled to 0", host: rig.Alpha, asker: accesslog.AskerNode, gets: 1, spares: everyWorker,
		begin: stopCache(rig.Alpha),
		end: func(ctx context.Context, p *rig.Run) {
			p.Check(scale(ctx, p, p.Services(ctx)[rig.Alpha], 1))
			p.Check(rig.IgnoreCaches(ctx, p, false))
		},
	}
}

// serviceDeleted returns the failure in which the Service is deleted and nothing recreates it. The
// end of the failure creates the Service with the same address.
func serviceDeleted() cacheFailure {
	var service corev1.Service
	return cacheFailure{
		name: "the Service is deleted", host: rig.Alpha, asker: accesslog.AskerNode, gets: 1, spares: everyWorker,
		begin: func(ctx context.Context, p *rig.Run) {
			service = p.Services(ctx)[rig.Alpha]
			p.Afterwards(ctx, func(ctx context.Context) error { return rig.IgnoreCaches(ctx, p, false) })
			p.Check(rig.IgnoreCaches(ctx, p, true))
			p.Check(p.Session.Shoot.Delete(ctx, service.DeepCopy()))
		},
		end: func(ctx context.Context, p *rig.Run) {
			service.ObjectMeta = metav1.ObjectMeta{
				Namespace: service.Namespace, Name: service.Name, Labels: service.Labels, Annotations: service.Annotations,
			}
			p.Check(p.Session.Shoot.Create(ctx, &service))
			p.Check(rig.IgnoreCaches(ctx, p, false))
		},
	}
}

// serviceRecreated returns the failure that ends with the reconciliation that tells nodes the new
// address.
func serviceRecreated() cacheFailure {
	return cacheFailure{
		name: "the Service is recreated", host: rig.Alpha, asker: accesslog.AskerNode, gets: 1, spares: everyWorker,
		begin: func(ctx context.Context, p *rig.Run) { p.Break(ctx, "cache/alpha", spec.RecreateService) },
		end: func(ctx context.Context, p *rig.Run) {
			p.Check(rig.ReconcileConfig(ctx, p, httpCache(rig.Alpha), tlsCache(rig.Beta)))
		},
	}
}

// nodeGone returns the failure that ends when the lost machine is back and the cache runs again.
func nodeGone() cacheFailure {
	var lost string
	return cacheFailure{
		name: "its node is gone", host: rig.Alpha, asker: accesslog.AskerNode, gets: 1,
		spares: func(_ context.Context, _ *rig.Run, worker *cluster.Node) bool { return worker.Name() != lost },
		begin: func(ctx context.Context, p *rig.Run) {
			lost = podOf(ctx, p, rig.Alpha).Spec.NodeName
			p.Break(ctx, "node/"+lost, spec.Loss)
		},
		end: func(ctx context.Context, p *rig.Run) {
			clearFaults(ctx, p)
			service := p.Services(ctx)[rig.Alpha]
			p.Await(ctx, "the cache runs again", 2*time.Minute, func(ctx context.Context) (bool, string, error) {
				ready, err := readyEndpoints(ctx, p, service)
				return ready > 0, fmt.Sprintf("%d ready endpoints", ready), err
			})
		},
	}
}

// awaitCachesServe waits until all workers use both caches, so that nothing of an earlier failure
// is left.
func awaitCachesServe(ctx context.Context, p *rig.Run) {
	p.Helper()
	p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
}

// elapse waits until the given time, for claims that name a time.
func elapse(ctx context.Context, p *rig.Run, until time.Time) {
	p.Helper()
	select {
	case <-time.After(time.Until(until)):
	case <-ctx.Done():
		p.Check(context.Cause(ctx))
	}
}
