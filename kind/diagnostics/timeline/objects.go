package timeline

import (
	"fmt"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// objects returns when Services of caches were created, for which there is no event, and when
// containers of caches ended.
func objects(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, service := range b.Shoot.CacheServices() {
		all = append(all, Entry{
			Time: service.CreationTimestamp.UTC(), Source: "shoot object", File: b.Shoot.ObjectsFile("services"), Level: logline.Info,
			Text: fmt.Sprintf("Service %s was created with the address %s", service.Name, service.Spec.ClusterIP),
		})
	}
	for _, pod := range b.Shoot.Pods {
		if pod.Labels[v1alpha3.LabelUpstreamHost] == "" {
			continue
		}
		for _, status := range pod.Status.ContainerStatuses {
			if ended := status.LastTerminationState.Terminated; ended != nil {
				all = append(all, Entry{
					Time: ended.FinishedAt.UTC(), Source: "shoot object", File: b.Shoot.ObjectsFile("pods"), Level: logline.Warning,
					Text: fmt.Sprintf("container %s of pod %s ended with exit code %d (%s)", status.Name, pod.Name, ended.ExitCode, ended.Reason),
				})
			}
		}
	}
	return all
}
