package fieldbugs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// host returns the host name of an upstream on the default testbed.
func host(upstream string) string { return upstream + ".upstream.test" }

func selector(upstream string) string { return "--selector=upstream-host=" + host(upstream) }

// get reads objects in the shoot's namespace kube-system, or cluster-scoped objects, like getOf.
func (r *Rig) get(ctx context.Context, into any, what ...string) error {
	return r.getOf(ctx, "shoot", metav1.NamespaceSystem, into, what...)
}

// getOf reads objects in a namespace of a cluster ("shoot", "seed"), and decodes them.
func (r *Rig) getOf(ctx context.Context, cluster, namespace string, into any, what ...string) error {
	out, err := r.Kubectl(ctx, cluster, append([]string{"get", "--namespace=" + namespace, "--output=json"}, what...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		return fmt.Errorf("get %s: %w", strings.Join(what, " "), err)
	}
	return nil
}

func (r *Rig) cachePod(ctx context.Context, upstream string) (corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.get(ctx, &pods, "pods", selector(upstream)); err != nil {
		return corev1.Pod{}, err
	}
	if len(pods.Items) != 1 {
		return corev1.Pod{}, fmt.Errorf("the cache of %s has %d pods, want 1", upstream, len(pods.Items))
	}
	return pods.Items[0], nil
}

// awaitCache waits until the cache has a ready pod other than the given one.
func (r *Rig) awaitCache(ctx context.Context, upstream string, bound time.Duration, before corev1.Pod) error {
	return r.Await(ctx, "the cache of "+upstream+" is ready", bound, func(ctx context.Context) (bool, string, error) {
		pod, err := r.cachePod(ctx, upstream)
		if err != nil {
			return false, err.Error(), nil //nolint:nilerr // a deleted pod is recreated
		}
		ready := health.IsPodReady(&pod)
		return ready && pod.UID != before.UID, fmt.Sprintf("pod %s %s, ready: %t", pod.UID, pod.Status.Phase, ready), nil
	})
}

// volume locates the volume of a cache: a folder on a node.
type volume struct {
	node, folder string
}

// volumeOf finds the volume of a cache. Volumes of the testbed are folders on nodes.
func (r *Rig) volumeOf(ctx context.Context, upstream string) (v volume, err error) {
	get := func(name, path string, what ...string) (answer string) {
		if err == nil {
			answer, err = r.Ask(ctx, name, slices.Concat([]string{"kubectl", "shoot", "get", "--namespace=kube-system"}, what, []string{"--output=jsonpath=" + path})...)
		}
		return answer
	}
	v.node = get("node", "{.items[*].spec.nodeName}", "pods", selector(upstream))
	disk := get("disk", "{.items[*].spec.volumeName}", "persistentvolumeclaims", selector(upstream))
	v.folder = get("folder", "{.spec.hostPath.path}{.spec.local.path}", "persistentvolume", disk)
	if err != nil {
		return volume{}, fmt.Errorf("the volume of the cache of %s: %w", upstream, err)
	}
	return v, nil
}

// shortNode returns the short name of a node of the shoot, as command lines use it.
func shortNode(name string) string { return name[strings.LastIndex(name, "-")+1:] }

// restartedBound limits the time until a restarted cache serves new images: the rollout, the
// configuration of nodes, and five seconds in which the cache asks no upstream after a failure.
const restartedBound = 40 * time.Second

// runningBound limits the time until a running cache serves a new image. It is well above the
// measured times (1.5 to 3.1 s in s4, s16, s21 and s22), and below the 30 s for which containerd
// waits for a cache that hangs. Restarted caches take longer (up to 15.3 s in s17 and s23).
const runningBound = 20 * time.Second

// newImage pushes an image and pulls it on one worker through the cache, which then stores it. It
// checks no claim: it tries new images until the cache serves one.
func (r *Rig) newImage(ctx context.Context, upstream string) (pull.Pushed, error) {
	return r.imageWithin(ctx, upstream, restartedBound)
}

func (r *Rig) imageWithin(ctx context.Context, upstream string, bound time.Duration) (img pull.Pushed, err error) {
	forget := func() {}
	err = r.Await(ctx, upstream+"'s cache serves an image", bound, func(ctx context.Context) (bool, string, error) {
		forget()
		forget = r.script.mark()
		var report *pull.Report
		if img, report, err = r.pushAndPull(ctx, upstream, "--node", "worker"); err != nil {
			return false, "", err
		}
		return throughCache(report, img), report.Verdict, nil
	})
	return img, err
}

// requireCached requires that a new image of alpha comes through alpha's running cache, and returns
// the image.
func (r *Rig) requireCached(ctx context.Context, claim string) (pull.Pushed, error) {
	return r.requireCachedWithin(ctx, claim, runningBound)
}

func (r *Rig) requireCachedWithin(ctx context.Context, claim string, bound time.Duration) (pull.Pushed, error) {
	start := time.Now()
	img, err := r.imageWithin(ctx, "alpha", bound)
	if err != nil {
		return img, r.awaited(ctx, claim, err)
	}
	return img, r.Within(claim, time.Since(start), bound)
}

// throughCache reports whether the cache fetched all blobs of the image for the pull.
func throughCache(report *pull.Report, img pull.Pushed) bool {
	return report.Total.Failed == 0 && report.Total.Fallbacks == 0 && BlobsBy(report, pull.CacheMiss) == len(img.Objects)-1
}

// requireStores requires that alpha's cache stores a new image and serves it from its store.
func (r *Rig) requireStores(ctx context.Context, claim string) error {
	img, err := r.newImage(ctx, "alpha")
	if err != nil {
		return err
	}
	_, err = r.requireHit(ctx, img.Reference, claim)
	return err
}

// requireHit requires that all blobs of a pull on worker2 come from the store of the cache. It
// waits until the nodes have noticed that a restarted cache answers again.
func (r *Rig) requireHit(ctx context.Context, reference, claim string) (*pull.Report, error) {
	upstream, _, _ := strings.Cut(reference, ".")
	if err := r.awaitMirrors(ctx, upstream, runningBound, hasMirror); err != nil {
		return nil, err
	}
	report, err := r.Pull(ctx, reference, "--node", "worker2", "--fresh")
	if err != nil {
		return report, err
	}
	hits, others := BlobsBy(report, pull.CacheHit), BlobsBy(report, pull.CacheMiss)+BlobsBy(report, pull.FromUpstream)
	return report, r.Require(claim, report.Total.Failed == 0 && hits > 0 && others == 0 && report.Total.Fallbacks == 0,
		"%d blobs from the cache's store, %d of the upstream, %d fallbacks, %d failed", hits, others, report.Total.Fallbacks, report.Total.Failed)
}
