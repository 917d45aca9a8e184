//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/plantedbugs"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// liveWithin bounds the time from saving a line until the change is in the shoot. The bound is
// generous, for busy machines; the evidence shows the actual time.
const liveWithin = 2 * time.Minute

// answerTimeout bounds one request to a pod.
const answerTimeout = 2 * time.Second

// innerLoop proves that `make dev`, in a copy of the sources, deploys a changed line as soon as the
// line is saved, needs no registry, and leaves no process behind.
func innerLoop() rig.Scenario {
	var loop *devLoop
	// Each change of the scenario is one line with the mark. The mark is unique, so that Go's build
	// cache does not contain the changed program.
	mark := "e2e-" + strings.ToLower(rand.Text()[:10])
	return rig.New("inner-loop",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("make dev is up, in a copy of the sources", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			loop = startLoop(ctx, p)
			awaitRound(ctx, p, loop)
			p.Evidence("make dev up after %s", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("a saved line of the controller reaches the shoot", func(ctx context.Context, p *rig.Run) {
			saved := save(p, loop, plantedbugs.AnnotateCaches(mark))
			p.Await(ctx, "the StatefulSets of the caches have the annotation "+mark, liveWithin, func(ctx context.Context) (bool, string, error) {
				state, err := unannotated(ctx, p, mark)
				return state == "" && err == nil, state, failure(err, loop)
			})
			p.Evidence("controller: %s from saving a line", rig.Seconds(time.Since(saved)))
			awaitRound(ctx, p, loop)
		}),

		rig.Prove("a saved line of the registry reaches the shoot", func(ctx context.Context, p *rig.Run) {
			shoot, err := kubernetes.NewForConfig(p.Session.Shoot.Config)
			p.Check(err)
			saved := save(p, loop, plantedbugs.AnswerMark(mark))
			p.Await(ctx, "every cache answers for /"+mark, liveWithin, func(ctx context.Context) (bool, string, error) {
				state, err := unchanged(ctx, shoot, mark)
				return state == "" && err == nil, state, failure(err, loop)
			})
			p.Evidence("registry: %s from saving a line", rig.Seconds(time.Since(saved)))
			awaitRound(ctx, p, loop)
		}),

		rig.Prove("nodes pull through the changed caches", func(ctx context.Context, p *rig.Run) {
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			awaitUpstreams(ctx, p, rig.Alpha)
			img := p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
		}),

		rig.Prove("Ctrl-C ends make dev, and no process is left", func(ctx context.Context, p *rig.Run) {
			p.Check(loop.interrupt(ctx))
		}),

		rig.Prove("the testbed's images run again", func(ctx context.Context, p *rig.Run) {
			useCacheImage(ctx, p, cachetest.Image(p.Session.Testbed))
			state, err := unannotated(ctx, p, mark)
			p.Check(err)
			if state == "" {
				p.Fatalf("the StatefulSets still have the annotation %s of the changed line", mark)
			}
		}),
	)
}

// unannotated returns a text that names a StatefulSet without the annotation, or "".
func unannotated(ctx context.Context, p *rig.Run, annotation string) (string, error) {
	sets := &appsv1.StatefulSetList{}
	if err := p.Session.Shoot.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return "", fmt.Errorf("list the caches: %w", err)
	}
	if len(sets.Items) == 0 {
		return "there is no cache", nil
	}
	for _, set := range sets.Items {
		if _, there := set.Annotations[annotation]; !there {
			return set.Name + " does not have the annotation", nil
		}
	}
	return "", nil
}

// unchanged returns a text that names a cache pod whose answer to a request for the path is not the
// path itself, or "".
func unchanged(ctx context.Context, shoot kubernetes.Interface, path string) (string, error) {
	pods, err := shoot.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: v1alpha3.LabelUpstreamHost})
	if err != nil {
		return "", fmt.Errorf("list the pods of the caches: %w", err)
	}
	if len(pods.Items) == 0 {
		return "there is no pod", nil
	}
	for _, pod := range pods.Items {
		// A connection to a pod that has just been deleted is not refused, so without this timeout the
		// API server would wait half a minute.
		asking, cancel := context.WithTimeout(ctx, answerTimeout)
		answer, err := shoot.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(v1alpha3.CacheDebugPort), "/"+path, nil).DoRaw(asking)
		cancel()
		if err != nil || string(answer) != path {
			return fmt.Sprintf("%s answers %q: %v", pod.Name, answer, err), nil
		}
	}
	return "", nil
}

// failure returns err. If err is nil, it returns the error with which make dev has exited, or nil
// while make dev runs.
func failure(err error, loop *devLoop) error {
	if err == nil {
		return loop.Failed()
	}
	return err
}
