package finding

import (
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

func faults(b *bundle.Bundle) (all []Finding) {
	for _, f := range b.Faults {
		if !f.Ended(b.Collected) {
			all = append(all, problem(bundle.FaultsFile, "testbed fault delete "+f.ID, "Fault %s is injected: %s %s.", f.ID, f.Target, f.Effect()))
		}
	}
	return all
}

func unknown(b *bundle.Bundle) (all []Finding) {
	for _, cluster := range []bundle.Cluster{b.Seed, b.Shoot} {
		if !cluster.Known {
			all = append(all, problem("", "testbed up",
				"There are no objects of the %s: the cluster does not exist, or its API server did not answer.", cluster.Folder))
		}
	}
	return all
}

func controlPlane(b *bundle.Bundle) (all []Finding) {
	for _, e := range b.Seed.Extensions {
		all = append(all, operation(b, fmt.Sprintf("Extension %s/%s", e.Namespace, e.Name), "extensions", e.Status.DefaultStatus)...)
		for _, condition := range e.Status.Conditions {
			if condition.Status == gardencorev1beta1.ConditionFalse {
				all = append(all, hint(b.Seed.ObjectsFile("extensions"), "Condition %s of Extension %s/%s is false.",
					condition.Type, e.Namespace, e.Name).with(condition.Reason+": "+condition.Message))
			}
		}
	}
	for _, o := range b.Seed.OperatingSystemConfigs {
		name := fmt.Sprintf("OperatingSystemConfig %s/%s", o.Namespace, o.Name)
		all = append(all, operation(b, name, "operatingsystemconfigs", o.Status.DefaultStatus)...)
	}
	return append(all, managedResources(b)...)
}

func operation(b *bundle.Bundle, name, resource string, status extensionsv1alpha1.DefaultStatus) []Finding {
	last, lastError, file := status.LastOperation, status.LastError, b.Seed.ObjectsFile(resource)
	switch {
	case lastError != nil:
		return []Finding{problem(file, "", "%s has an error.", name).with(lastError.Description)}
	case last == nil:
		return []Finding{hint(file, "%s has not been reconciled.", name)}
	case last.State == gardencorev1beta1.LastOperationStateSucceeded:
		return nil
	}
	return []Finding{hint(file, "The last operation of %s has not succeeded: %s %s.", name, last.Type, last.State).with(last.Description)}
}

func managedResources(b *bundle.Bundle) (all []Finding) {
	for _, resource := range b.Seed.ManagedResources {
		for _, condition := range resource.Status.Conditions {
			progressing, bad := condition.Type == "ResourcesProgressing", gardencorev1beta1.ConditionFalse
			if progressing {
				bad = gardencorev1beta1.ConditionTrue
			}
			if condition.Status != bad {
				continue
			}
			found := hint(b.Seed.ObjectsFile("managedresources"), "ManagedResource %s/%s: %s is %s.",
				resource.Namespace, resource.Name, condition.Type, strings.ToLower(string(condition.Status)))
			found.Certain = !progressing
			all = append(all, found.with(condition.Reason+": "+condition.Message))
		}
	}
	return all
}

// seedPods reports Deployments of the seed that are not ready. Without the extension no Extension
// is reconciled; without gardener-resource-manager nothing is deployed to the shoot.
func seedPods(b *bundle.Bundle) (all []Finding) {
	for _, deployment := range b.Seed.Deployments {
		wanted := ptr.Deref(deployment.Spec.Replicas, 1)
		if deployment.Status.ReadyReplicas >= wanted {
			continue
		}
		found := problem(b.Seed.ObjectsFile("pods"), "", "Deployment %s/%s of the seed has %d ready pods of %d.",
			deployment.Namespace, deployment.Name, deployment.Status.ReadyReplicas, wanted)
		for _, pod := range b.Seed.Pods {
			if pod.Namespace == deployment.Namespace && strings.HasPrefix(pod.Name, deployment.Name+"-") {
				found = found.with(podState(&pod)...)
			}
		}
		all = append(all, found)
	}
	return all
}

// podState returns the reasons why a pod is not ready, and none for a ready pod.
func podState(pod *corev1.Pod) (all []string) {
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

const webhookName = "gardener-extension-" + v1alpha3.ExtensionType

// webhook reports OperatingSystemConfigs that the extension's webhook has not mutated although
// there are caches. Without the mutation, nodes lose their hosts.toml files.
func webhook(b *bundle.Bundle) []Finding {
	if len(b.Cached()) == 0 {
		return nil
	}
	var all []Finding
	for _, config := range b.Seed.OperatingSystemConfigs {
		if config.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile ||
			slices.ContainsFunc(config.Spec.Units, func(unit extensionsv1alpha1.Unit) bool { return unit.Name == bundle.ScriptUnit }) {
			continue
		}
		found := problem(b.Seed.ObjectsFile("operatingsystemconfigs"),
			"check the MutatingWebhookConfiguration in the seed, the label of the namespace, and the pod of the extension; "+
				"then reconcile the Shoot (testbed shoot reconcile)",
			"OperatingSystemConfig %s/%s has no unit %s, although there are caches: the API server did not call the extension's webhook.",
			config.Namespace, config.Name, bundle.ScriptUnit)
		if !slices.ContainsFunc(b.Seed.MutatingWebhooks, func(w admissionregistrationv1.MutatingWebhookConfiguration) bool {
			return strings.HasPrefix(w.Name, webhookName)
		}) {
			found = found.with("the seed has no MutatingWebhookConfiguration " + webhookName + "; the extension creates it when it starts")
		}
		all = append(all, found)
	}
	return all
}
