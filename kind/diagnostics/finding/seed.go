package finding

import (
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

func faults(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, f := range b.Faults {
		if f.Ended(b.Collected) {
			continue
		}
		all = append(all, Finding{
			Certain: true, Problem: fmt.Sprintf("Fault %s is injected: %s %s.", f.ID, f.Target, f.Effect()),
			Fix: "testbed fault delete " + f.ID, File: bundle.FaultsFile,
		})
	}
	return all
}

func unknown(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, cluster := range []bundle.Cluster{b.Seed, b.Shoot} {
		if !cluster.Known {
			all = append(all, Finding{
				Certain: true, Fix: "testbed up",
				Problem: fmt.Sprintf("There are no objects of the %s: the cluster does not exist, or its API server did not answer.", cluster.Folder),
			})
		}
	}
	return all
}

func controlPlane(b *bundle.Bundle) []Finding {
	var all []Finding
	for i := range b.Seed.Extensions {
		e := &b.Seed.Extensions[i]
		all = append(all, operation(b, fmt.Sprintf("Extension %s/%s", e.Namespace, e.Name), "extensions", e.Status.DefaultStatus)...)
		for _, condition := range e.Status.Conditions {
			if condition.Status == gardencorev1beta1.ConditionFalse {
				all = append(all, Finding{
					Problem: fmt.Sprintf("Condition %s of Extension %s/%s is false.", condition.Type, e.Namespace, e.Name),
					Details: []string{condition.Reason + ": " + condition.Message}, File: b.Seed.ObjectsFile("extensions"),
				})
			}
		}
	}
	for i := range b.Seed.OperatingSystemConfigs {
		o := &b.Seed.OperatingSystemConfigs[i]
		name := fmt.Sprintf("OperatingSystemConfig %s/%s", o.Namespace, o.Name)
		all = append(all, operation(b, name, "operatingsystemconfigs", o.Status.DefaultStatus)...)
	}
	return append(all, managedResources(b)...)
}

// operation reports an operation that has failed or has not succeeded.
func operation(b *bundle.Bundle, name, resource string, status extensionsv1alpha1.DefaultStatus) []Finding {
	last, lastError := status.LastOperation, status.LastError
	found := Finding{Certain: true, File: b.Seed.ObjectsFile(resource)}
	switch {
	case lastError != nil:
		found.Problem = name + " has an error."
		found.Details = []string{lastError.Description}
	case last == nil:
		found.Problem, found.Certain = name+" has not been reconciled.", false
	case last.State == gardencorev1beta1.LastOperationStateSucceeded:
		return nil
	default:
		found.Problem, found.Certain = fmt.Sprintf("The last operation of %s has not succeeded: %s %s.", name, last.Type, last.State), false
		found.Details = []string{last.Description}
	}
	return []Finding{found}
}

func managedResources(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, resource := range b.Seed.ManagedResources {
		for _, condition := range resource.Status.Conditions {
			progressing := string(condition.Type) == "ResourcesProgressing"
			bad := condition.Status == gardencorev1beta1.ConditionFalse
			if progressing && condition.Status != gardencorev1beta1.ConditionTrue || !progressing && !bad {
				continue
			}
			all = append(all, Finding{
				Certain: !progressing,
				Problem: fmt.Sprintf("ManagedResource %s/%s: %s is %s.",
					resource.Namespace, resource.Name, condition.Type, strings.ToLower(string(condition.Status))),
				Details: []string{condition.Reason + ": " + condition.Message}, File: b.Seed.ObjectsFile("managedresources"),
			})
		}
	}
	return all
}

// seedPods reports Deployments of the seed that are not ready. Without the extension no Extension
// is reconciled; without gardener-resource-manager nothing is deployed to the shoot.
func seedPods(b *bundle.Bundle) []Finding {
	var all []Finding
	for _, deployment := range b.Seed.Deployments {
		wanted := int32(1)
		if deployment.Spec.Replicas != nil {
			wanted = *deployment.Spec.Replicas
		}
		if deployment.Status.ReadyReplicas >= wanted {
			continue
		}
		found := Finding{
			Certain: true, File: b.Seed.ObjectsFile("pods"),
			Problem: fmt.Sprintf("Deployment %s/%s of the seed has %d ready pods of %d.",
				deployment.Namespace, deployment.Name, deployment.Status.ReadyReplicas, wanted),
		}
		for i := range b.Seed.Pods {
			if pod := &b.Seed.Pods[i]; pod.Namespace == deployment.Namespace && strings.HasPrefix(pod.Name, deployment.Name+"-") {
				found.Details = append(found.Details, podState(pod)...)
			}
		}
		all = append(all, found)
	}
	return all
}

// podState returns why a pod is not ready; nothing if it is.
func podState(pod *corev1.Pod) []string {
	var all []string
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			all = append(all, fmt.Sprintf("pod %s is not scheduled: %s", pod.Name, condition.Message))
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		name := fmt.Sprintf("pod %s on %s, container %s", pod.Name, pod.Spec.NodeName, status.Name)
		switch waiting := status.State.Waiting; {
		case waiting != nil:
			all = append(all, strings.TrimSuffix(fmt.Sprintf("%s is waiting, %s: %s", name, waiting.Reason, waiting.Message), ": "))
		case !status.Ready:
			all = append(all, name+" is not ready")
		}
		if last := status.LastTerminationState.Terminated; last != nil && !status.Ready {
			all = append(all, fmt.Sprintf("%s ended with exit code %d (%s) at %s, %d restarts", name, last.ExitCode, last.Reason,
				clock(last.FinishedAt.Time), status.RestartCount))
		}
	}
	if pod.DeletionTimestamp != nil {
		all = append(all, "pod "+pod.Name+" is being deleted")
	}
	return all
}
