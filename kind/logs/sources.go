package logs

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

// PodLogs returns logs of started containers in pods that match wanted. A nil keep means all lines.
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
			streams = append(streams, Stream{
				Name: name, Open: openPod(client, pod, status.Name),
				Parse: func(text string) (Line, bool) {
					line, ok := Container(text)
					return line, ok && (keep == nil || keep(line))
				},
			})
		}
	}
	return streams, nil
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

// followJournal runs journalctl only until standard input ends, that is, until docker ends.
const followJournal = `journalctl --no-pager --quiet --output=short-iso-precise --follow "$@" & trap 'kill $!' EXIT; cat >/dev/null`

// NodeLogs returns the journal of each of the units on each of the nodes.
func NodeLogs(prefix string, nodes []*cluster.Node, units ...string) (streams []Stream) {
	for _, node := range nodes {
		for _, unit := range units {
			name := strings.TrimPrefix(node.Name(), prefix+"-") + "/" + strings.TrimSuffix(unit, path.Ext(unit))
			open := func(ctx context.Context, window Window, out io.Writer) error {
				return shell.Capture(ctx, journalArgv(node.Name(), unit, window), out)
			}
			streams = append(streams, Stream{Name: name, Open: open, Parse: Journal})
		}
	}
	return streams
}

func journalArgv(node, unit string, window Window) []string {
	selection := []string{"--unit=" + unit}
	if !window.Since.IsZero() {
		selection = append(selection, fmt.Sprintf("--since=@%.6f", float64(window.Since.UnixMicro())/1e6))
	}
	inNode := []string{"docker", "exec", "--interactive", node}
	if !window.Follow {
		return slices.Concat(inNode, []string{"journalctl", "--no-pager", "--quiet", "--output=short-iso-precise"}, selection)
	}
	if window.Since.IsZero() {
		selection = append(selection, "--lines=all")
	}
	return slices.Concat(inNode, []string{"bash", "-c", followJournal, "bash"}, selection)
}

// UpstreamLogs returns the access logs of upstreams, with one JSON record per line.
func UpstreamLogs(t *kind.Testbed) (streams []Stream) {
	for _, registry := range t.Upstreams.All() {
		container := registry.Container()
		open := func(ctx context.Context, window Window, out io.Writer) error {
			return shell.Capture(ctx, dockerLogsArgv(container, window), out)
		}
		streams = append(streams, Stream{Name: registry.Host(), Open: open, Parse: Container})
	}
	return streams
}

func dockerLogsArgv(container string, window Window) []string {
	argv := []string{"docker", "logs", "--timestamps"}
	if !window.Since.IsZero() {
		argv = append(argv, "--since="+window.Since.UTC().Format(time.RFC3339Nano))
	}
	if window.Follow {
		argv = append(argv, "--follow")
	}
	return append(argv, container)
}
