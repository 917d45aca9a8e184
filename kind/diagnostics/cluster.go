package diagnostics

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Cluster returns a source for one cluster: the objects that Gardener and the extension work with,
// events, and the logs of all pods. The data of Secrets is left out.
func Cluster(name string, config *rest.Config) Source {
	return clusterSource(name, func() (clients, error) { return connect(config) })
}

type clients struct {
	objects dynamic.Interface
	typed   kubernetes.Interface
}

// connect returns clients whose requests fail after 15 seconds: an API server that hangs must not
// use up the time of the source.
func connect(config *rest.Config) (clients, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 15 * time.Second
	config.WarningHandler = rest.NoWarnings{}
	config.QPS, config.Burst = 100, 200
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	typed, err := kubernetes.NewForConfig(config)
	return clients{objects, typed}, err
}

func clusterSource(name string, connect func() (clients, error)) Source {
	return Source{name, func(ctx context.Context, into *Folder) {
		to, err := connect()
		if err != nil {
			into.Fail("", err)
			return
		}
		collectEvents(ctx, to.typed, into)
		for _, resource := range resources {
			collectObjects(ctx, to.objects, resource, into)
		}
		collectLogs(ctx, to.typed, into)
	}}
}

const tailLines = 10000

func collectLogs(ctx context.Context, client kubernetes.Interface, into *Folder) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		into.Fail("logs", err)
		return
	}
	for _, pod := range pods.Items {
		for _, log := range logsOf(pod) {
			options := &corev1.PodLogOptions{Container: log.container, Previous: log.previous, Timestamps: true, TailLines: new(int64(tailLines))}
			content, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
			if err != nil && log.previous { // the kubelet deletes previous logs
				content, err = fmt.Appendf(nil, "log not available: %v\n", err), nil
			}
			into.store(log.file, content, err)
		}
	}
}

type podLog struct {
	file, container string
	previous        bool
}

// logsOf returns the logs of each started container of a pod: the current log and, after a restart,
// the previous log.
func logsOf(pod corev1.Pod) (logs []podLog) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		base := path.Join("logs", pod.Namespace, pod.Name, status.Name)
		if status.State.Running != nil || status.State.Terminated != nil {
			logs = append(logs, podLog{file: base + ".log", container: status.Name})
		}
		if status.LastTerminationState.Terminated != nil {
			logs = append(logs, podLog{file: base + ".previous.log", container: status.Name, previous: true})
		}
	}
	return logs
}

func collectEvents(ctx context.Context, client kubernetes.Interface, into *Folder) {
	events, err := client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		into.Fail("events.txt", err)
		return
	}
	into.Write("events.txt", []byte(eventTable(events.Items)))
}

func eventTable(events []corev1.Event) string {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, e := range events {
		object := path.Join(e.InvolvedObject.Namespace, e.InvolvedObject.Kind, e.InvolvedObject.Name)
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%dx\t%s\n",
			lastSeen(e).UTC().Format(time.RFC3339), e.Type, e.Reason, object, max(1, e.Count), oneLine(e.Message))
	}
	_ = table.Flush()
	return out.String()
}

// lastSeen returns the newest time of an event. The two APIs for events set different fields.
func lastSeen(e corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
