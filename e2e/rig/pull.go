//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

const (
	// PullTimeout is far above the bounds of the scenarios, so that a slow pull is measured instead of
	// canceled.
	PullTimeout = 90 * time.Second
	// MaxPull is how long a pull may take without the cache: the promise to the user.
	MaxPull = 5 * time.Second
)

// RunPod runs a pod with the image on the worker and returns the time from its creation until it
// ran. This includes the kubelet's own work. RunPod deletes the pod; the image stays on the node.
func RunPod(ctx context.Context, p *Run, worker *cluster.Node, img Pushed) (took time.Duration, err error) {
	pod := pullPod(worker.Name(), img)
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

// pullPod bypasses the scheduler, so that neither taints nor other pods keep the pod off the node.
func pullPod(node string, img Pushed) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-pull-", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "pause", Image: img.Reference(), ImagePullPolicy: corev1.PullAlways,
			}},
		},
	}
}

// PodState describes the phase of a pod and why its containers wait.
func PodState(pod *corev1.Pod) string {
	state := fmt.Sprintf("phase %s", pod.Status.Phase)
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			state += fmt.Sprintf(", container waits: %s %s", waiting.Reason, waiting.Message)
		}
	}
	return state
}

// TimedPull makes the node's container runtime pull the image, with the CRI request of a kubelet,
// and returns how long the pull alone took on the node's clock.
func TimedPull(ctx context.Context, worker *cluster.Node, img Pushed) (time.Duration, error) {
	out, err := worker.Script(ctx, `
start=${EPOCHREALTIME/[.,]/}
timeout "$2" crictl pull "$1" >/dev/null
echo $((${EPOCHREALTIME/[.,]/} - start))`, img.Reference(), fmt.Sprintf("%.0fs", PullTimeout.Seconds()))
	if err != nil {
		return 0, fmt.Errorf("pull %s: %w", img.Reference(), err)
	}
	microseconds, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("time of the pull of %s on %s: %w", img.Reference(), worker.Name(), err)
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}

// TimedPull makes the node's container runtime pull the image and returns how long that took.
func (p *Run) TimedPull(ctx context.Context, worker *cluster.Node, img Pushed) time.Duration {
	p.Helper()
	took, err := TimedPull(ctx, worker, img)
	p.Check(err)
	return took
}

// Pull runs a pod with the image on the worker and returns the time until it ran.
func (p *Run) Pull(ctx context.Context, worker *cluster.Node, img Pushed) time.Duration {
	p.Helper()
	took, err := RunPod(ctx, p, worker, img)
	p.Check(err)
	return took
}

// Seconds formats a duration for evidence.
func Seconds(d time.Duration) string {
	return fmt.Sprintf("%.2fs", d.Seconds())
}
