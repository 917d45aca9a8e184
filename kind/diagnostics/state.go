package diagnostics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
	"github.com/gardener-extensions/registry-cache/kind/readiness"
)

// state shows how things stand: the chain from the Extension's status over Services to what containerd reads on each node.
func (i *index) state(text *strings.Builder) {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	b := i.bundle
	for _, cached := range b.Cached() {
		fmt.Fprintf(out, "cache of %s\tExtension: %s\tService: %s\t%s\n",
			cached.Upstream, cached.Endpoint, serviceOf(b, cached.Upstream), podsOf(b, cached.Upstream))
	}
	for _, node := range b.Nodes {
		for n, mirror := range node.Mirrors {
			name := b.ShortName(node.Name)
			if n > 0 {
				name = ""
			}
			asked := strings.Join(append(slices.Clone(mirror.Hosts), mirror.Server), ", then ")
			fmt.Fprintf(out, "%s\t%s\tasks: %s\t%s\n", name, mirror.Upstream, asked, owner(mirror))
		}
		if len(node.Mirrors) == 0 && node.Worker() {
			fmt.Fprintf(out, "%s\tno hosts.toml\t\t\n", b.ShortName(node.Name))
		}
	}
	for _, upstream := range b.Upstreams {
		requests := map[string]int{}
		for _, record := range upstream.Records.Pulls() {
			requests[string(record.Asker)]++
		}
		var counts []string
		for _, asker := range sortedKeys(requests) {
			counts = append(counts, fmt.Sprintf("%d by %s", requests[asker], asker))
		}
		fmt.Fprintf(out, "upstream %s\t%s\trequests: %s\t\n", upstream.Host, upstream.State, strings.Join(counts, ", "))
	}
	_ = out.Flush() // to a strings.Builder
	var lines []string
	for line := range strings.Lines(table.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	if len(lines) > 0 {
		i.section(text, "How things stand", strings.Join(lines, "\n"))
	}
}

func owner(mirror hostsfile.Mirror) string {
	if mirror.Managed {
		return ""
	}
	return "not ours"
}

func serviceOf(b *bundle.Bundle, upstream string) string {
	for _, service := range b.Shoot.CacheServices() {
		if service.Annotations[v1alpha3.AnnotationUpstream] == upstream {
			return service.Name + " " + service.Spec.ClusterIP
		}
	}
	return "none"
}

// podsOf says where the pods behind the Service of a cache are, and whether they are ready.
func podsOf(b *bundle.Bundle, upstream string) string {
	var all []string
	for _, service := range b.Shoot.CacheServices() {
		if service.Annotations[v1alpha3.AnnotationUpstream] != upstream {
			continue
		}
		for _, pod := range b.Shoot.Pods {
			if pod.Namespace == service.Namespace && len(service.Spec.Selector) > 0 && matches(service.Spec.Selector, pod.Labels) {
				all = append(all, fmt.Sprintf("%s on %s %s", pod.Name, b.ShortName(pod.Spec.NodeName), readyWord(pod)))
			}
		}
	}
	if len(all) == 0 {
		return "no pod"
	}
	return strings.Join(all, ", ")
}

func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func readyWord(pod corev1.Pod) string {
	if readiness.Pod(&pod) {
		return "ready"
	}
	return "not ready"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
