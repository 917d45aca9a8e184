//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// stockImage proves that a cache can run the stock image of distribution, and that this image and
// the project's image can use each other's volumes.
func stockImage() rig.Scenario {
	var stock image.Built
	var fromProject, fromStock rig.Pushed
	return rig.New("stock-image",
		rig.Prove("caches run from the project's image", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			fromProject = p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), fromProject)
			p.FetchedOnce(ctx, fromProject, accesslog.AskerCache)
		}),

		rig.Prove("the stock image is built", func(ctx context.Context, p *rig.Run) {
			var err error
			stock, err = cachetest.StockImage(ctx, p.Session.Testbed)
			p.Check(err)
		}),

		rig.Prove("caches run from the stock image, and pulls go through them", func(ctx context.Context, p *rig.Run) {
			p.Afterwards(ctx, func(ctx context.Context) error {
				return cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed))
			})
			useCacheImage(ctx, p, stock)
			fromStock = p.Push(ctx, rig.Alpha)
			took := p.Pull(ctx, p.Worker(0), fromStock)
			p.Evidence("stock image: %s, running after %s", p.FetchedOnce(ctx, fromStock, accesslog.AskerCache), rig.Seconds(took))
			p.TimedPull(ctx, p.Worker(1), fromProject)
			p.FetchedOnce(ctx, fromProject, accesslog.AskerCache)
			p.Evidence("stock image: serves images that the project's image has stored")
		}),

		rig.Prove("caches run from the project's image again, and have what the stock image stored", func(ctx context.Context, p *rig.Run) {
			useCacheImage(ctx, p, cachetest.Image(p.Session.Testbed))
			p.TimedPull(ctx, p.Worker(1), fromStock)
			p.FetchedOnce(ctx, fromStock, accesslog.AskerCache)
			p.Evidence("project's image again: serves images that the stock image has stored")
		}),
	)
}

// useCacheImage makes the caches of alpha and beta run from the image.
func useCacheImage(ctx context.Context, p *rig.Run, cache image.Built) {
	p.Helper()
	p.Check(cachetest.UseImage(ctx, p.Session.Testbed, cache))
	p.Reconcile(ctx, rig.Alpha, rig.Beta)
	p.Await(ctx, "the caches run from "+cache.Ref, time.Minute, func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		err := p.Session.Shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost})
		images := []string{}
		for _, pod := range pods.Items {
			images = append(images, pod.Spec.Containers[0].Image)
		}
		all := len(images) == 2 && images[0] == cache.Ref && images[1] == cache.Ref
		return all, strings.Join(images, ", "), err
	})
	p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
	p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
}
