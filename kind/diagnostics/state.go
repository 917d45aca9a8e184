package diagnostics

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

var trailing = regexp.MustCompile(`(?m) +$`)

func (i *index) state(text *strings.Builder) {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	b := i.bundle
	for _, cached := range b.Cached() {
		service, pods := cacheService(b, cached.Upstream)
		fmt.Fprintf(out, "cache of %s\tExtension: %s\tService: %s\t%s\n", cached.Upstream, cached.Endpoint, service, pods)
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
	i.section(text, "Current state", strings.TrimRight(trailing.ReplaceAllString(table.String(), ""), "\n"))
}

func cacheService(b *bundle.Bundle, upstream string) (service, pods string) {
	found, exists := b.Shoot.CacheService(upstream)
	if !exists {
		return "none", "no pod"
	}
	var all []string
	for _, pod := range b.Shoot.Pods {
		selector := found.Spec.Selector
		if pod.Namespace != found.Namespace || len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			continue
		}
		ready := "not ready"
		if health.IsPodReady(&pod) {
			ready = "ready"
		}
		all = append(all, fmt.Sprintf("%s on %s %s", pod.Name, b.ShortName(pod.Spec.NodeName), ready))
	}
	return found.Name + " " + found.Spec.ClusterIP, cmp.Or(strings.Join(all, ", "), "no pod")
}

func versions(b *bundle.Bundle) string {
	lines := []string{b.Versions}
	add := func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for _, cluster := range []bundle.Cluster{b.Seed, b.Shoot} {
		for _, node := range cluster.Nodes {
			info := node.Status.NodeInfo
			add("nodes of the %s: Kubernetes %s, %s, %s, kernel %s", cluster.Folder, info.KubeletVersion,
				strings.ReplaceAll(info.ContainerRuntimeVersion, "://", " "), info.OSImage, info.KernelVersion)
		}
		for _, pod := range cluster.Pods {
			// Skip all but the extension, caches, the cleaner, and Gardener's components.
			if !strings.HasPrefix(pod.Name, "registry-") && !strings.HasPrefix(pod.Name, "gardener-") {
				continue
			}
			for _, container := range pod.Spec.Containers {
				add("running in the %s: %s", cluster.Folder, container.Image)
			}
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
