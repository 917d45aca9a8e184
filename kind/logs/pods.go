package logs

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// PodLogs returns the logs of the containers of pods that have begun. keep leaves out lines; nil
// keeps all.
func PodLogs(ctx context.Context, t *kind.Testbed, c *cluster.Cluster, namespace string, wanted func(corev1.Pod) bool,
	keep func(Line) bool,
) ([]Stream, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", namespace, err)
	}
	var streams []Stream
	for _, pod := range pods.Items {
		if !wanted(pod) {
			continue
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Running == nil && status.State.Terminated == nil {
				continue
			}
			name := pod.Name
			if len(pod.Status.ContainerStatuses) > 1 {
				name += "/" + status.Name
			}
			streams = append(streams, Stream{Name: name, Open: openPod(client, pod, status.Name), Parse: keeping(keep)})
		}
	}
	return streams, nil
}

func keeping(keep func(Line) bool) func(string) (Line, bool) {
	return func(text string) (Line, bool) {
		line, ok := Container(text)
		return line, ok && (keep == nil || keep(line))
	}
}

func openPod(client kubernetes.Interface, pod corev1.Pod, container string) func(context.Context, Window, io.Writer) error {
	return func(ctx context.Context, window Window, out io.Writer) error {
		options := &corev1.PodLogOptions{Container: container, Timestamps: true, Follow: window.Follow}
		if !window.Since.IsZero() {
			options.SinceTime = &metav1.Time{Time: window.Since}
		}
		stream, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		_, err = io.Copy(out, stream)
		return err
	}
}
