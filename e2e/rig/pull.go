//go:build e2e

package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	// PullTimeout bounds a pull. It is far above all bounds of scenarios, so slow pulls are measured.
	PullTimeout = 90 * time.Second
	// MaxPull bounds a pull without the cache. This bound is promised to users.
	MaxPull = 5 * time.Second
)

// RunPod runs a pod with the image on the worker and returns the time from the pod's creation until
// it ran, which includes the kubelet's work. RunPod deletes the pod; the image stays on the node.
func RunPod(ctx context.Context, p *Run, worker *cluster.Node, img Pushed) (took time.Duration, err error) {
	// The pod bypasses the scheduler, so that neither taints nor other pods keep it off the node.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-pull-", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			NodeName: worker.Name(), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
			AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			Containers: []corev1.Container{{Name: "pause", Image: img.Reference(), ImagePullPolicy: corev1.PullAlways}},
		},
	}
	start := time.Now()
	if err := p.Session.Shoot.Create(ctx, pod); err != nil {
		return 0, fmt.Errorf("create the pod that pulls %s: %w", img.Reference(), err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, pod, client.GracePeriodSeconds(0))))
	}()
	what := fmt.Sprintf("a pod with %s runs on %s", img.Reference(), worker.Name())
	err = Await(ctx, what, PullTimeout, func(ctx context.Context) (bool, string, error) {
		err := p.Session.Shoot.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodRunning, PodState(pod), err
	})
	return time.Since(start), err
}

// PodState describes the phase of a pod, why it is not scheduled, and why its containers wait.
func PodState(pod *corev1.Pod) string {
	state := fmt.Sprintf("phase %s", pod.Status.Phase)
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			state += ", not scheduled: " + condition.Message
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			state += fmt.Sprintf(", container waits: %s %s", waiting.Reason, waiting.Message)
		}
	}
	return state
}

// TimedPull makes the node's container runtime pull the image, with the same CRI request as the
// kubelet, and returns how long the pull took, measured on the node.
func TimedPull(ctx context.Context, worker *cluster.Node, img Pushed) (time.Duration, error) {
	return TimedPullOf(ctx, worker, img.Reference())
}

// TimedPullOf is like TimedPull, but takes a reference with a tag or a digest.
func TimedPullOf(ctx context.Context, worker *cluster.Node, reference string) (time.Duration, error) {
	out, err := worker.Script(ctx, `
start=${EPOCHREALTIME/[.,]/}
timeout "$2" crictl pull "$1" >/dev/null
echo $((${EPOCHREALTIME/[.,]/} - start))`, reference, fmt.Sprintf("%.0fs", PullTimeout.Seconds()))
	if err != nil {
		return 0, fmt.Errorf("pull %s: %w", reference, err)
	}
	microseconds, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("time of the pull of %s on %s: %w", reference, worker.Name(), err)
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}

// TimedPull calls the function TimedPull, and fails the scenario after an error.
func (p *Run) TimedPull(ctx context.Context, worker *cluster.Node, img Pushed) time.Duration {
	p.Helper()
	return must(TimedPull(ctx, worker, img))(p)
}

// Pull runs a pod with the image on the worker and returns the time until the pod ran.
func (p *Run) Pull(ctx context.Context, worker *cluster.Node, img Pushed) time.Duration {
	p.Helper()
	return must(RunPod(ctx, p, worker, img))(p)
}

// Seconds formats a duration for evidence.
func Seconds(d time.Duration) string {
	return fmt.Sprintf("%.2fs", d.Seconds())
}

const (
	imageLayers    = 2
	imageLayerSize = 256 << 10
)

// Pushed is an image in an upstream. The image has random content. Until PushBeside is called, it
// is the only image in its repository, so each request for the repository in the upstream's log is
// for this image.
type Pushed struct {
	Host, Repository, Tag, Digest string
	// Blobs are the digests that a pull on an empty node must fetch: the config and the layers.
	Blobs []string
	// Bytes is the size of the blobs.
	Bytes int64
}

// Reference returns the reference of the image with its tag.
func (i Pushed) Reference() string {
	return i.Host + "/" + i.Repository + ":" + i.Tag
}

// ByDigest returns the reference of the image with its digest.
func (i Pushed) ByDigest() string {
	return i.Host + "/" + i.Repository + "@" + i.Digest
}

// Push pushes a new random image to the upstream.
func Push(ctx context.Context, p *Run, host string) (Pushed, error) {
	return PushLayers(ctx, p, host, imageLayers, imageLayerSize)
}

// PushLayers pushes a new random image with the given number of layers, each of the given size.
func PushLayers(ctx context.Context, p *Run, host string, layers int, bytes int64) (Pushed, error) {
	return pushTo(ctx, p, newImage(host), layers, bytes)
}

func newImage(host string) Pushed {
	return Pushed{Host: host, Repository: "e2e/" + strings.ToLower(rand.Text()[:10]), Tag: "latest"}
}

// pushTo pushes random content to the repository and the tag of img.
func pushTo(ctx context.Context, p *Run, img Pushed, layers int, bytes int64) (Pushed, error) {
	random, err := image.Random(p.Session.pause, layers, bytes)
	if err != nil {
		return Pushed{}, err
	}
	return pushContent(ctx, p, img, random)
}

// pushContent pushes the content to the repository and the tag of img.
func pushContent(ctx context.Context, p *Run, img Pushed, content v1.Image) (Pushed, error) {
	manifest, err := content.Manifest()
	if err != nil {
		return Pushed{}, fmt.Errorf("read the manifest of a test image: %w", err)
	}
	img.Blobs, img.Bytes = nil, 0
	for _, blob := range append([]v1.Descriptor{manifest.Config}, manifest.Layers...) {
		img.Blobs = append(img.Blobs, blob.Digest.String())
		img.Bytes += blob.Size
	}
	registry, err := upstreamOf(p, img.Host)
	if err != nil {
		return Pushed{}, err
	}
	digest, err := registry.Push(ctx, img.Repository, img.Tag, content)
	if err != nil {
		return Pushed{}, fmt.Errorf("push a test image to %s: %w", img.Host, err)
	}
	img.Digest = digest.String()
	return img, nil
}

func upstreamOf(p *Run, host string) (*upstream.Registry, error) {
	registry := p.Session.Testbed.Upstream(host)
	if registry == nil {
		return nil, fmt.Errorf("the testbed has no upstream %s", host)
	}
	return registry, nil
}

// Requests returns the requests for the image in the upstream's log, without the scenario's own
// pushes.
func (p *Run) Requests(ctx context.Context, img Pushed) accesslog.Records {
	p.Helper()
	registry := must(upstreamOf(p, img.Host))(p)
	return must(registry.Log(ctx))(p).Repository(img.Repository).Pulls()
}

// Push calls the function Push, and fails the scenario after an error.
func (p *Run) Push(ctx context.Context, host string) Pushed {
	p.Helper()
	return must(Push(ctx, p, host))(p)
}

// PushLayers calls the function PushLayers, and fails the scenario after an error.
func (p *Run) PushLayers(ctx context.Context, host string, layers int, bytes int64) Pushed {
	p.Helper()
	return must(PushLayers(ctx, p, host, layers, bytes))(p)
}

// PushBeside pushes another image to the repository of img, with another tag.
func (p *Run) PushBeside(ctx context.Context, img Pushed, tag string) Pushed {
	p.Helper()
	img.Tag = tag
	return must(pushTo(ctx, p, img, imageLayers, imageLayerSize))(p)
}

// PushOver pushes a new image with the layers of base and one more, to a repository of its own.
func (p *Run) PushOver(ctx context.Context, base Pushed) (img Pushed) {
	p.Helper()
	registry, err := upstreamOf(p, base.Host)
	p.Check(err)
	p.Check(registry.Describe(ctx, base.Repository, base.Tag, func(_ *v1.Descriptor, below v1.Image) error {
		content, err := image.Extend(below, 1, imageLayerSize)
		if err == nil {
			img, err = pushContent(ctx, p, newImage(base.Host), content)
		}
		return err
	}))
	return img
}

// TimedPullOf calls the function TimedPullOf, and fails the scenario after an error.
func (p *Run) TimedPullOf(ctx context.Context, worker *cluster.Node, reference string) time.Duration {
	p.Helper()
	return must(TimedPullOf(ctx, worker, reference))(p)
}

// FetchedOnce proves that the asker fetched each blob of the image from the upstream once, and that
// no other client fetched a blob. If asker is the cache, nodes must not have sent any request.
func (p *Run) FetchedOnce(ctx context.Context, img Pushed, asker accesslog.Asker) accesslog.Evidence {
	p.Helper()
	return p.FetchedAtMost(ctx, img, asker, 1)
}

// FetchedAtMost is like FetchedOnce, but allows up to the given number of GETs for each blob.
func (p *Run) FetchedAtMost(ctx context.Context, img Pushed, asker accesslog.Asker, most int) accesslog.Evidence {
	p.Helper()
	records := p.Requests(ctx, img)
	gets := records.Blobs().Gets()
	perBlob := gets.By(asker).PerReference()
	for _, blob := range img.Blobs {
		if gets := perBlob[blob]; gets < 1 || gets > most {
			p.Errorf("%s saw %d GETs by %s of blob %s, want 1 to %d", img.Host, gets, asker, blob, most)
		}
	}
	if others := len(gets) - len(gets.By(asker)); others != 0 {
		p.Errorf("%s saw %d blob GETs of %s by clients other than %s: %v", img.Host, others, img.Repository, asker, gets.Askers())
	}
	if nodes := records.By(accesslog.AskerNode); asker == accesslog.AskerCache && len(nodes) != 0 {
		p.Errorf("%s got %d requests from nodes for %s, want none: %s %s", img.Host, len(nodes), img.Repository, nodes[0].Method, nodes[0].Path)
	}
	if len(perBlob) != len(img.Blobs) {
		p.Errorf("%s saw GETs of %d blobs of %s, want %d", img.Host, len(perBlob), img.Repository, len(img.Blobs))
	}
	if p.Failed() {
		p.FailNow()
	}
	return records.Evidence()
}

// Upstream starts an additional upstream and stops it when the scenario ends.
func (p *Run) Upstream(ctx context.Context, options upstream.Options) *upstream.Registry {
	p.Helper()
	registry, err := p.Session.Testbed.StartUpstream(ctx, options)
	p.Check(err)
	p.Afterwards(ctx, func(ctx context.Context) error { return p.Session.Testbed.StopUpstream(ctx, registry) })
	return registry
}
