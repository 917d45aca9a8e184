package diagnostics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/readiness"
)

// state writes the current state of each cache: the status of the Extension, the Service, the pods,
// and what containerd reads on each node.
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
			unmanaged := ""
			if !mirror.Managed {
				unmanaged = "unmanaged"
			}
			fmt.Fprintf(out, "%s\t%s\tasks: %s\t%s\n", name, mirror.Upstream, asked, unmanaged)
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
	_ = out.Flush() // a strings.Builder does not fail
	var lines []string
	for line := range strings.Lines(table.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	if len(lines) > 0 {
		i.section(text, "Current state", strings.Join(lines, "\n"))
	}
}

func serviceOf(b *bundle.Bundle, upstream string) string {
	for _, service := range b.Shoot.CacheServices() {
		if service.Annotations[v1alpha3.AnnotationUpstream] == upstream {
			return service.Name + " " + service.Spec.ClusterIP
		}
	}
	return "none"
}

// podsOf lists the pods that the Service of a cache selects, with their nodes and whether they are
// ready.
func podsOf(b *bundle.Bundle, upstream string) string {
	var all []string
	for _, service := range b.Shoot.CacheServices() {
		if service.Annotations[v1alpha3.AnnotationUpstream] != upstream {
			continue
		}
		for _, pod := range b.Shoot.Pods {
			if selector := service.Spec.Selector; pod.Namespace != service.Namespace || len(selector) == 0 ||
				!labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
				continue
			}
			ready := "not ready"
			if readiness.Pod(&pod) {
				ready = "ready"
			}
			all = append(all, fmt.Sprintf("%s on %s %s", pod.Name, b.ShortName(pod.Spec.NodeName), ready))
		}
	}
	if len(all) == 0 {
		return "no pod"
	}
	return strings.Join(all, ", ")
}

// versions returns VersionsFile, the versions that nodes report, and the images of pods.
func versions(b *bundle.Bundle) string {
	lines := []string{}
	if b.Versions != "" {
		lines = append(lines, b.Versions)
	}
	seen := map[string]bool{}
	add := func(line string) {
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	for _, cluster := range []bundle.Cluster{b.Seed, b.Shoot} {
		for _, node := range cluster.Nodes {
			info := node.Status.NodeInfo
			add(fmt.Sprintf("nodes of the %s: Kubernetes %s, %s, %s, kernel %s", cluster.Folder, info.KubeletVersion,
				strings.ReplaceAll(info.ContainerRuntimeVersion, "://", " "), info.OSImage, info.KernelVersion))
		}
		for i := range cluster.Pods {
			pod := &cluster.Pods[i]
			// The extension, caches, the cleaner, and Gardener's components.
			if !strings.HasPrefix(pod.Name, "registry-") && !strings.HasPrefix(pod.Name, "gardener-") {
				continue
			}
			for _, container := range pod.Spec.Containers {
				add(fmt.Sprintf("running in the %s: %s", cluster.Folder, container.Image))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
