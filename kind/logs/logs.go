package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Options select the logs.
type Options struct {
	Component Component
	Name      string        // the name of a cache, node, unit or upstream, for example "alpha" or "worker2/kubelet", see Choose
	Since     time.Duration // the age of the oldest lines; 0 means all lines
	Follow    bool          // continue with new lines, even of new containers and pods, until the context ends
}

// Read calls the function take for each line of a component's logs, sorted by time or, with Follow,
// as the lines arrive. It attaches to the testbed if needed. For an unknown component or name, it
// returns a *UsageError. If a log cannot be read, Read reads the other logs and then returns the
// error. With Follow, Read instead retries.
func Read(ctx context.Context, t *kind.Testbed, options Options, take func(Line)) error {
	if err := t.AttachOnce(ctx); err != nil {
		return err
	}
	all, err := find(ctx, t, options.Component)
	if err != nil {
		return err
	}
	streams, err := Choose(all, options.Name)
	if err != nil {
		return err
	}
	if len(streams) == 0 {
		return fmt.Errorf("no log of %s exists now", options.Component)
	}
	var since time.Time
	if options.Since > 0 {
		since = time.Now().Add(-options.Since)
	}
	if options.Follow {
		return Follow(ctx, finder(t, options), since, take)
	}
	lines, err := Collect(ctx, streams, since)
	for _, line := range lines {
		take(line)
	}
	return err
}

// finder returns the function with which Follow repeatedly finds the selected logs.
func finder(t *kind.Testbed, options Options) func(context.Context) ([]Stream, error) {
	return func(ctx context.Context) ([]Stream, error) {
		all, err := find(ctx, t, options.Component)
		streams, _ := Choose(all, options.Name) // a missing log may be temporary: pods are replaced
		return streams, err
	}
}

func find(ctx context.Context, t *kind.Testbed, component Component) ([]Stream, error) {
	shootNamespace := gardenlet.Namespace(gardenlet.DefaultShoot)
	switch component {
	case Cache:
		return PodLogs(ctx, t, t.Shoot, metav1.NamespaceSystem, IsCache, nil)
	case Node:
		return NodeLogs(t.ShootName(), t.Shoot.Nodes(), kind.ContainerdUnit, kind.KubeletUnit, kind.GardenerNodeAgentUnit, nodeconfig.UnitName),
			nil
	case GNA:
		return NodeLogs(t.ShootName(), t.Shoot.Workers(), kind.GardenerNodeAgentUnit), nil
	case Upstream:
		return UpstreamLogs(t), nil
	case Extension:
		return PodLogs(ctx, t, t.Seed, kind.ExtensionNamespace, anyPod, nil)
	case Webhook:
		own, err := PodLogs(ctx, t, t.Seed, kind.ExtensionNamespace, anyPod, aboutWebhooks)
		admission, admissionErr := PodLogs(ctx, t, t.Seed, kind.AdmissionNamespace, anyPod, nil)
		return append(own, admission...), errors.Join(err, admissionErr)
	case GRM:
		ofShoot, err := PodLogs(ctx, t, t.Seed, shootNamespace, isResourceManager, nil)
		ofSeed, seedErr := PodLogs(ctx, t, t.Seed, "garden", isResourceManager, nil)
		return append(ofShoot, ofSeed...), errors.Join(err, seedErr)
	default:
		_, err := ParseComponent(string(component))
		return nil, err
	}
}

func anyPod(corev1.Pod) bool { return true }

// IsCache reports whether the pod belongs to a cache.
func IsCache(pod corev1.Pod) bool { return pod.Labels[v1alpha3.LabelUpstreamHost] != "" }

func isResourceManager(pod corev1.Pod) bool {
	return strings.HasPrefix(pod.Name, "gardener-resource-manager-")
}

// aboutWebhooks selects the lines about webhooks, since the extension also runs controllers.
func aboutWebhooks(line Line) bool { return strings.Contains(line.Text, "webhook") }

// Component is a part of the testbed that has logs.
type Component string

// The components.
const (
	Cache     Component = "cache"     // the caches in the shoot
	Node      Component = "node"      // the systemd units that configure nodes and pull images
	Upstream  Component = "upstream"  // the access logs of upstreams
	Webhook   Component = "webhook"   // the webhooks of the extension and of the admission component
	Extension Component = "extension" // the extension in the seed
	GRM       Component = "grm"       // gardener-resource-manager of the shoot and of the seed
	GNA       Component = "gna"       // gardener-node-agent on the workers
)

// Components returns all components.
func Components() []Component {
	return []Component{Cache, Node, Upstream, Webhook, Extension, GRM, GNA}
}

// UsageError is the error for an unknown name, with the valid ones, or for an invalid image.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// UsageError marks the error for internal/program: exit code 2.
func (*UsageError) UsageError() {}

// UsageErrorf returns a *UsageError.
func UsageErrorf(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// ParseComponent returns the component with a name, or a *UsageError.
func ParseComponent(name string) (Component, error) {
	if slices.Contains(Components(), Component(name)) {
		return Component(name), nil
	}
	var names []string
	for _, component := range Components() {
		names = append(names, string(component))
	}
	return "", UsageErrorf("unknown component %q, use one of %s", name, strings.Join(names, ", "))
}

// Choose returns the streams whose names contain the whole word at the start, or after "-" or "/".
// Without a word it returns all streams. It returns a *UsageError if no stream matches.
func Choose(all []Stream, word string) ([]Stream, error) {
	var kept []Stream
	var names []string
	for _, stream := range all {
		names = append(names, stream.Name)
		if word == "" || matches(stream.Name, word) {
			kept = append(kept, stream)
		}
	}
	if len(kept) == 0 && word != "" {
		return nil, UsageErrorf("no log matches %q, use one of %s", word, strings.Join(names, ", "))
	}
	return kept, nil
}

// matches reports whether the word selects the name: "alpha" matches
// registry-alpha-upstream-test-0, "worker" does not match worker2, and "worker/kubelet" matches a
// unit.
func matches(name, word string) bool {
	for rest := name; ; {
		if after, found := strings.CutPrefix(rest, word); found && (after == "" || strings.ContainsAny(after[:1], "-./")) {
			return true
		}
		i := strings.IndexAny(rest, "-/")
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
}
