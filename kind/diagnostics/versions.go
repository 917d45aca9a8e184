package diagnostics

import (
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

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
