package diagnostics

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// versions are what the maker of the bundle wrote, and what nodes and pods say of themselves.
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
			if pod := &cluster.Pods[i]; ours(pod) {
				for _, container := range pod.Spec.Containers {
					add(fmt.Sprintf("running in the %s: %s", cluster.Folder, container.Image))
				}
			}
		}
	}
	return strings.Join(lines, "\n")
}

// ours says whether a pod is the extension, a cache, a cleaner, or a part of Gardener.
func ours(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Name, "registry-") || strings.HasPrefix(pod.Name, "gardener-")
}
