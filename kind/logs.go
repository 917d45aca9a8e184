package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/logs"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// LogOptions say which logs are wanted.
type LogOptions struct {
	Component logs.Component
	// Name keeps one cache, node, unit or upstream of several, for example "alpha", "worker2", "worker2/kubelet".
	Name string
	// Since is how far back; 0 is from the beginning.
	Since time.Duration
	// Follow goes on with what is new until the context ends, also of containers that are restarted, and of pods that come.
	Follow bool
}

// Logs hands on the lines of a component's logs: in the order of time, or, when it follows, as they come. It connects to the testbed
// unless that is done. A component or name that is not there is a *logs.UseError. Lines are handed on also when a part of the logs
// cannot be read, which is the error then; who follows waits for that part, and it is an error if there is no other, see logs.Follow.
func (t *Testbed) Logs(ctx context.Context, options LogOptions, take func(logs.Line)) error {
	if err := t.attachOnce(ctx); err != nil {
		return err
	}
	all, err := t.logStreams(ctx, options.Component)
	if err != nil {
		return err
	}
	streams, err := logs.Choose(all, options.Name)
	if err != nil {
		return err
	}
	if len(streams) == 0 {
		return fmt.Errorf("there is no log of %s now", options.Component)
	}
	since := time.Time{}
	if options.Since > 0 {
		since = time.Now().Add(-options.Since)
	}
	if options.Follow {
		return logs.Follow(ctx, t.logFinder(options), since, take)
	}
	lines, err := logs.Collect(ctx, streams, since)
	for _, line := range lines {
		take(line)
	}
	return err
}

// logFinder finds the logs that are wanted anew: pods come and go.
func (t *Testbed) logFinder(options LogOptions) func(context.Context) ([]logs.Stream, error) {
	return func(ctx context.Context) ([]logs.Stream, error) {
		all, err := t.logStreams(ctx, options.Component)
		streams, _ := logs.Choose(all, options.Name) // that there is none of that name may pass
		return streams, err
	}
}

// logStreams are the logs of a component that there are now.
func (t *Testbed) logStreams(ctx context.Context, component logs.Component) ([]logs.Stream, error) {
	shootNamespace := gardenlet.Namespace(gardenlet.FirstShoot)
	switch component {
	case logs.Cache:
		return t.podLogs(ctx, t.shoot, metav1.NamespaceSystem, isCache, nil)
	case logs.Node:
		return nodeLogs(t.shootName(), t.shoot.Nodes(), "containerd.service", "kubelet.service", gardenerNodeAgentUnit, nodeconfig.UnitName), nil
	case logs.GNA:
		return nodeLogs(t.shootName(), t.shoot.Workers(), gardenerNodeAgentUnit), nil
	case logs.Upstream:
		return t.upstreamLogs(), nil
	case logs.Extension:
		return t.podLogs(ctx, t.seed, ExtensionNamespace, anyPod, nil)
	case logs.Webhook:
		own, err := t.podLogs(ctx, t.seed, ExtensionNamespace, anyPod, aboutWebhooks)
		admission, admissionErr := t.podLogs(ctx, t.seed, AdmissionNamespace, anyPod, nil)
		return append(own, admission...), errors.Join(err, admissionErr)
	case logs.GRM:
		ofShoot, err := t.podLogs(ctx, t.seed, shootNamespace, isResourceManager, nil)
		ofSeed, seedErr := t.podLogs(ctx, t.seed, "garden", isResourceManager, nil)
		return append(ofShoot, ofSeed...), errors.Join(err, seedErr)
	default:
		_, err := logs.ParseComponent(string(component))
		return nil, err
	}
}

const gardenerNodeAgentUnit = "gardener-node-agent.service"

func anyPod(corev1.Pod) bool { return true }

func isCache(pod corev1.Pod) bool { return pod.Labels[v1alpha3.LabelUpstreamHost] != "" }

func isResourceManager(pod corev1.Pod) bool {
	return strings.HasPrefix(pod.Name, "gardener-resource-manager-")
}

// aboutWebhooks keeps what a process with controllers beside its webhooks says of these.
func aboutWebhooks(line logs.Line) bool { return strings.Contains(line.Text, "webhook") }

// podLogs are the logs of the containers of pods that have begun. keep leaves out lines; nil keeps all.
func (t *Testbed) podLogs(ctx context.Context, c *cluster.Cluster, namespace string, wanted func(corev1.Pod) bool,
	keep func(logs.Line) bool,
) ([]logs.Stream, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", namespace, err)
	}
	var streams []logs.Stream
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
			streams = append(streams, logs.Stream{Name: name, Open: openPod(client, pod, status.Name), Parse: keeping(keep)})
		}
	}
	return streams, nil
}

func keeping(keep func(logs.Line) bool) func(string) (logs.Line, bool) {
	return func(text string) (logs.Line, bool) {
		line, ok := logs.Container(text)
		return line, ok && (keep == nil || keep(line))
	}
}

func openPod(client kubernetes.Interface, pod corev1.Pod, container string) func(context.Context, logs.Window, io.Writer) error {
	return func(ctx context.Context, window logs.Window, out io.Writer) error {
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

// followJournal ends when its input does, which is when the docker command is gone: nothing stays on the node.
const followJournal = `journalctl --no-pager --quiet --output=short-iso-precise --follow "$@" & trap 'kill $!' EXIT; cat >/dev/null`

// nodeLogs are the journals of units of nodes.
func nodeLogs(prefix string, nodes []*cluster.Node, units ...string) []logs.Stream {
	var streams []logs.Stream
	for _, node := range nodes {
		for _, unit := range units {
			name := strings.TrimPrefix(node.Name(), prefix+"-") + "/" + strings.TrimSuffix(unit, path.Ext(unit))
			streams = append(streams, logs.Stream{Name: name, Open: openJournal(node.Name(), unit), Parse: logs.Journal})
		}
	}
	return streams
}

func openJournal(node, unit string) func(context.Context, logs.Window, io.Writer) error {
	return func(ctx context.Context, window logs.Window, out io.Writer) error {
		return run(ctx, journalArgv(node, unit, window), out)
	}
}

// journalArgv is the command line that prints a part of a journal.
func journalArgv(node, unit string, window logs.Window) []string {
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

// upstreamLogs are the access logs of upstreams, one JSON record a line.
func (t *Testbed) upstreamLogs() []logs.Stream {
	var streams []logs.Stream
	for _, registry := range t.upstreams.all() {
		container := registry.Container()
		open := func(ctx context.Context, window logs.Window, out io.Writer) error {
			return run(ctx, dockerLogsArgv(container, window), out)
		}
		streams = append(streams, logs.Stream{Name: registry.Host(), Open: open, Parse: logs.Container})
	}
	return streams
}

func dockerLogsArgv(container string, window logs.Window) []string {
	argv := []string{"docker", "logs", "--timestamps"}
	if !window.Since.IsZero() {
		argv = append(argv, "--since="+window.Since.UTC().Format(time.RFC3339Nano))
	}
	if window.Follow {
		argv = append(argv, "--follow")
	}
	return append(argv, container)
}

// run runs a program until it ends, or ctx does. Its input ends with it.
func run(ctx context.Context, argv []string, out io.Writer) error {
	in, end := io.Pipe()
	defer func() { _ = end.Close() }()
	var problem beginning
	code, err := execute(ctx, argv, Streams{In: in, Out: out, Err: &problem})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d: %s", argv[0], code, strings.TrimSpace(string(problem)))
	}
	return err
}

// beginning keeps the first part of what is written: a program that is followed may complain for ever.
type beginning []byte

// maxBeginning is how much it keeps, in bytes.
const maxBeginning = 1 << 10

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), maxBeginning-len(*b))]...)
	return len(p), nil
}
