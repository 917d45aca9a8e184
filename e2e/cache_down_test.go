//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// cacheDown proves that nodes pull from the upstream, with little delay, if a cache is down or does
// not answer, and that they use it again when it is back.
func cacheDown() rig.Scenario {
	var direct time.Duration
	return rig.New("cache-down",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("a direct pull is measured", func(ctx context.Context, p *rig.Run) {
			img := p.Push(ctx, rig.Gamma)
			direct = p.TimedPull(ctx, p.Worker(0), img)
			p.FetchedOnce(ctx, img, accesslog.AskerNode)
			p.Evidence("direct pull %s", rig.Seconds(direct))
		}),

		rig.Prove("alpha's cache is scaled to 0", stopCache(rig.Alpha)),
		rig.Prove("nodes notice that it is down, and pull directly", func(ctx context.Context, p *rig.Run) {
			proveNoticed(ctx, p, rig.Alpha)
		}),
		rig.Prove("nodes notice that it is back, and ask it again", func(ctx context.Context, p *rig.Run) {
			p.Check(scale(ctx, p, p.Services(ctx)[rig.Alpha], 1))
			start := time.Now()
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			img := p.Push(ctx, rig.Alpha)
			back := time.Since(start)
			if back > maxReturn {
				p.Fatalf("noticed after %s, want at most %s", rig.Seconds(back), maxReturn)
			}
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("noticed within %s, then upstream: %s", rig.Seconds(back), p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),

		rig.Prove("a pull past a cache that drops packets is about as quick", func(ctx context.Context, p *rig.Run) {
			// Without the script's loop the node cannot notice the failure, so only the timeout in
			// hosts.toml limits the delay.
			p.Afterwards(ctx, func(ctx context.Context) error {
				_, err := p.Worker(0).Exec(ctx, "systemctl", "start", nodeconfig.UnitName)
				return err
			})
			_, err := p.Worker(0).Exec(ctx, "systemctl", "stop", nodeconfig.UnitName)
			p.Check(err)
			p.Break(ctx, "cache/beta", spec.Blackhole)
			provePastCache(ctx, p, rig.Beta, direct, "cache unreachable")
		}),

		rig.Prove("a pull that begins when the cache refuses connections is quick", func(ctx context.Context, p *rig.Run) {
			proveAtOnce(ctx, p, spec.Refuse, directPull(ctx, p, p.Worker(0))+3*time.Second)
		}).InFullLane(),
		rig.Prove("a pull that begins when the cache drops packets waits 0.5 s for each part", func(ctx context.Context, p *rig.Run) {
			proveAtOnce(ctx, p, spec.Blackhole, atOnceParts*500*time.Millisecond+5*time.Second)
		}).InFullLane(),
		rig.Prove("a pull that begins when the cache hangs ends when the node notices", func(ctx context.Context, p *rig.Run) {
			proveAtOnce(ctx, p, spec.Stop, 15*time.Second) // containerd alone waits 30 s for an answer
		}).InFullLane(),
	)
}

const (
	// maxExtra bounds how much longer than a direct pull a pull may take after nodes have noticed that
	// the cache fails.
	maxExtra = time.Second
	// maxReturn bounds the time from the recovery of a cache until nodes ask it again.
	maxReturn = 15 * time.Second
)

// proveNoticed proves that nodes stop asking a cache that fails, and that the next pull takes at
// most maxExtra longer than a direct pull right before it.
func proveNoticed(ctx context.Context, p *rig.Run, host string) {
	p.Helper()
	start := time.Now()
	awaitDirect(ctx, p, host)
	noticed := time.Since(start)
	direct := directPull(ctx, p, p.Worker(0))
	img := p.PushLayers(ctx, host, failoverLayers, failoverLayerBytes)
	took := p.TimedPull(ctx, p.Worker(0), img)
	if took > direct+maxExtra {
		p.Fatalf("the pull took %s and %s direct, want at most %s more", rig.Seconds(took), rig.Seconds(direct), rig.Seconds(maxExtra))
	}
	p.Evidence("noticed within %s, then a pull %s (direct %s), upstream: %s", rig.Seconds(noticed), rig.Seconds(took), rig.Seconds(direct),
		p.FetchedOnce(ctx, img, accesslog.AskerNode))
}

// awaitDirect waits until the upstream's hosts.toml names no mirror on any worker, which is the
// case once the workers have noticed that the cache fails.
func awaitDirect(ctx context.Context, p *rig.Run, host string) {
	p.Helper()
	p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, "no worker asks the cache of "+host, rig.NoticedTimeout, func(ctx context.Context) (bool, string, error) {
		for _, worker := range p.Workers() {
			content, err := rig.ReadFile(ctx, worker, rig.HostsPath(host))
			if err != nil || strings.Contains(content, "[host.") {
				return false, worker.Name() + ": " + content, err
			}
		}
		return true, "", nil
	}))
}

// atOnceParts is the number of requests for an image of failoverLayers: the manifest by tag and by
// digest, the config, the layer with the program, and the other layers.
const atOnceParts = 4 + failoverLayers

// proveAtOnce makes alpha's cache fail and proves that a pull that begins right then succeeds
// without the cache, within the bound. It also proves that nodes notice the failure, and that they
// ask the cache again afterwards.
func proveAtOnce(ctx context.Context, p *rig.Run, kind spec.Kind, bound time.Duration) {
	p.Helper()
	clearFaults(ctx, p)
	_, err := p.Worker(0).Exec(ctx, "systemctl", "start", nodeconfig.UnitName)
	p.Check(err)
	p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
	img := p.PushLayers(ctx, rig.Alpha, failoverLayers, failoverLayerBytes)
	p.Break(ctx, "cache/alpha", kind)
	took := p.TimedPull(ctx, p.Worker(0), img)
	if took > bound {
		p.Fatalf("the pull took %s, want at most %s", rig.Seconds(took), rig.Seconds(bound))
	}
	p.Evidence("%s: pull %s, upstream: %s", kind, rig.Seconds(took), p.FetchedAtMost(ctx, img, accesslog.AskerNode, 2))
	proveNoticed(ctx, p, rig.Alpha)
	clearFaults(ctx, p)
	start := time.Now()
	p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
	p.Evidence("afterwards: %s", cachedWithin(ctx, p, rig.Alpha, start, runningWithin))
}

// pullsPastCache is the number of pulls that bypass a cache and are measured until one is quick
// enough. One quick pull is enough, because other load can only slow pulls down. Without the
// dial_timeout in hosts.toml, each pull would take minutes.
const pullsPastCache = 3

// provePastCache proves that a pull gets every blob from the upstream, although hosts.toml names
// the cache, and that it takes at most MaxPull longer than a direct pull.
func provePastCache(ctx context.Context, p *rig.Run, host string, direct time.Duration, what string) {
	p.Helper()
	worker, endpoint := p.Worker(0), p.Endpoints(ctx)[host]
	var all []string
	for range pullsPastCache {
		img := p.Push(ctx, host)
		took := p.TimedPull(ctx, worker, img)
		evidence := p.FetchedOnce(ctx, img, accesslog.AskerNode)
		if hosts := p.Hosts(ctx, worker, host); !strings.Contains(hosts, `"`+endpoint+`"`) {
			p.Fatalf("the node's hosts.toml does not name the cache %s, so this proves nothing: %s", endpoint, hosts)
		}
		all = append(all, rig.Seconds(took))
		if took <= direct+rig.MaxPull {
			p.Evidence("%s: pull %s, upstream: %s", what, strings.Join(all, ", then "), evidence)
			return
		}
	}
	p.Fatalf("the pulls took %s and %s direct, want at most %s more", strings.Join(all, ", "), rig.Seconds(direct), rig.MaxPull)
}

// stopCache returns the function of a step that scales the cache of an upstream to 0 replicas until
// the scenario ends. The step first sets the annotation "ignore" on the ManagedResource, as an
// operator would, so that gardener-resource-manager does not scale the cache up again.
func stopCache(host string) func(context.Context, *rig.Run) {
	return func(ctx context.Context, p *rig.Run) {
		service, ok := p.Services(ctx)[host]
		if !ok {
			p.Fatalf("%s has no Service", host)
		}
		p.Afterwards(ctx, func(ctx context.Context) error {
			return errors.Join(rig.IgnoreCaches(ctx, p, false), scale(ctx, p, service, 1))
		})
		p.Check(rig.IgnoreCaches(ctx, p, true))
		p.Check(scale(ctx, p, service, 0))
	}
}

// scale sets a cache's number of replicas, and waits until exactly that many are ready.
func scale(ctx context.Context, p *rig.Run, service corev1.Service, replicas int) error {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
	patch := client.RawPatch(client.Merge.Type(), fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := p.Session.Shoot.Patch(ctx, set, patch); err != nil {
		return fmt.Errorf("scale %s to %d: %w", set.Name, replicas, err)
	}
	return rig.Await(ctx, fmt.Sprintf("%d pods answer behind Service %s", replicas, service.Name), time.Minute,
		func(ctx context.Context) (bool, string, error) {
			pods := &corev1.PodList{}
			err := p.Session.Shoot.List(ctx, pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector))
			if err != nil {
				return false, "", err
			}
			ready, err := readyEndpoints(ctx, p, service)
			state := fmt.Sprintf("%d pods, %d ready endpoints", len(pods.Items), ready)
			return ready == replicas && len(pods.Items) == replicas, state, err
		})
}

func readyEndpoints(ctx context.Context, p *rig.Run, service corev1.Service) (int, error) {
	slices := &discoveryv1.EndpointSliceList{}
	err := p.Session.Shoot.List(ctx, slices, client.InNamespace(service.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	ready := 0
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				ready += len(endpoint.Addresses)
			}
		}
	}
	return ready, err
}
