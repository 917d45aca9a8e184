//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// stockImage proves that a stock distribution image works as cache image, on the volumes of ours and back again.
func stockImage() scenario {
	var stock image.Built
	var ours, theirs pushed
	return newScenario("stock-image",
		step{"caches run from our image", func(ctx context.Context, p *scenarioRun) {
			cached(alpha, beta)(ctx, p)
			ours = p.Push(ctx, alpha)
			p.Pull(ctx, p.Worker(0), ours)
			p.FetchedOnce(ctx, ours, accesslog.AskerCache)
		}},
		step{"the stock image is built", func(ctx context.Context, p *scenarioRun) {
			var err error
			stock, err = bringup.StockCacheImage(ctx, p.suite.testbed)
			p.Check(err)
		}},
		step{"caches run from the stock image, and pulls go through them", func(ctx context.Context, p *scenarioRun) {
			p.Afterwards(ctx, func(ctx context.Context) error {
				return bringup.UseCacheImage(ctx, p.suite.testbed, bringup.CacheImage(p.suite.testbed))
			})
			useCacheImage(ctx, p, stock)
			theirs = p.Push(ctx, alpha)
			took := p.Pull(ctx, p.Worker(0), theirs)
			p.Evidence("stock image: %s, running after %s", p.FetchedOnce(ctx, theirs, accesslog.AskerCache), seconds(took))
			p.Pull(ctx, p.Worker(1), ours)
			p.FetchedOnce(ctx, ours, accesslog.AskerCache)
			p.Evidence("stock image: serves what ours has stored")
		}},
		step{"caches run from our image again, and have what the stock image stored", func(ctx context.Context, p *scenarioRun) {
			useCacheImage(ctx, p, bringup.CacheImage(p.suite.testbed))
			p.Pull(ctx, p.Worker(1), theirs)
			p.FetchedOnce(ctx, theirs, accesslog.AskerCache)
			p.Evidence("back to ours: serves what the stock image has stored")
		}},
	)
}

// useCacheImage makes the caches of alpha and beta run from the image.
func useCacheImage(ctx context.Context, p *scenarioRun, cache image.Built) {
	p.Helper()
	p.Check(bringup.UseCacheImage(ctx, p.suite.testbed, cache))
	p.Reconcile(ctx, alpha, beta)
	p.Await(ctx, "the caches run from "+cache.Ref, time.Minute, func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		err := p.suite.shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{upstreamHostLabel})
		images := []string{}
		for _, pod := range pods.Items {
			images = append(images, pod.Spec.Containers[0].Image)
		}
		all := len(images) == 2 && images[0] == cache.Ref && images[1] == cache.Ref
		return all, strings.Join(images, ", "), err
	})
	p.AwaitCaches(ctx, alpha, beta)
	p.AwaitMirrors(ctx, alpha, beta)
}
