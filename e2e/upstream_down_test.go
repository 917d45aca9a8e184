//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	// maxRestart is how long a cache may take to be ready again, its upstream answering or not.
	maxRestart = 30 * time.Second
	// maxStoredPull is what a pull of what is stored may take while the upstream hangs: one question, which has five seconds, for
	// the tag, and the pull itself.
	maxStoredPull = 10 * time.Second
)

// upstreamDown proves that a cache whose pod starts while its upstream hangs serves what it has stored, by tag, and goes on by
// itself when the upstream is back (distribution#4038).
func upstreamDown() scenario {
	var stored pushed
	return newScenario("upstream-down",
		step{"alpha is cached, and an image is stored", func(ctx context.Context, p *scenarioRun) {
			cached(alpha, beta)(ctx, p)
			stored = p.Push(ctx, alpha)
			p.TimedPull(ctx, p.Worker(0), stored)
			p.FetchedOnce(ctx, stored, accesslog.AskerCache)
		}},
		step{"alpha hangs, and its cache starts anew", func(ctx context.Context, p *scenarioRun) {
			p.Break(ctx, "upstream/"+alpha, spec.Hang)
			pod := podOf(ctx, p, alpha)
			start := time.Now()
			p.Check(p.suite.shoot.Delete(ctx, pod, client.GracePeriodSeconds(0)))
			p.Await(ctx, "another pod is ready", maxRestart, func(ctx context.Context) (bool, string, error) {
				now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
				err := p.suite.shoot.Get(ctx, client.ObjectKeyFromObject(now), now)
				return now.UID != pod.UID && health.IsPodReady(now), podState(now), client.IgnoreNotFound(err)
			})
			p.AwaitMirrors(ctx, alpha, beta)
			p.Evidence("pod ready after %s while the upstream hangs", seconds(time.Since(start)))
		}},
		step{"another node gets the stored image by its tag, in time", func(ctx context.Context, p *scenarioRun) {
			took := p.TimedPull(ctx, p.Worker(1), stored)
			if took > maxStoredPull {
				p.Fatalf("the pull took %s, want at most %s", seconds(took), maxStoredPull)
			}
			p.Evidence("still a hit, in %s: %s", seconds(took), p.FetchedOnce(ctx, stored, accesslog.AskerCache))
		}},
		step{"the upstream is back, and a new image comes through the cache", func(ctx context.Context, p *scenarioRun) {
			p.Mend(ctx)
			img, endpoint := p.Push(ctx, alpha), p.Endpoints(ctx)[alpha]
			url := fmt.Sprintf("%s/v2/%s/manifests/latest", endpoint, img.repository)
			p.Await(ctx, "the cache has the manifest of a new image", maxRestart, func(ctx context.Context) (bool, string, error) {
				out, err := p.Worker(0).Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null",
					"--header", "Accept: application/vnd.oci.image.manifest.v1+json", "--write-out", "%{http_code}", url)
				return strings.TrimSpace(out) == "200", out, err
			})
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("afterwards: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}},
	)
}

// Break brings a fault about, see kind/fault, until the scenario ends or Mend.
func (p *scenarioRun) Break(ctx context.Context, target string, kind spec.Kind) {
	p.Helper()
	wanted, err := spec.New(target, string(kind), nil)
	p.Check(err)
	p.Afterwards(ctx, func(ctx context.Context) error { return clearFaults(ctx, p) })
	_, err = fault.Add(ctx, p.suite.testbed, wanted)
	p.Check(err)
}

// Mend ends all faults.
func (p *scenarioRun) Mend(ctx context.Context) {
	p.Helper()
	p.Check(clearFaults(ctx, p))
}

func clearFaults(ctx context.Context, p *scenarioRun) error {
	_, err := fault.Clear(ctx, p.suite.testbed)
	return err
}
