package cleaner

import (
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// cleanName is the name of the init container that does the task.
	cleanName = "clean"
	// finalizeAfter is how long gardener-resource-manager waits for the pods to go before it removes the finalizer of the
	// DaemonSet. It deletes in the foreground, and the pod on a node that is down never goes. It is more than the grace
	// period of the pods. In a shoot of hundreds of nodes Kubernetes takes longer than that to delete all pods; it goes on
	// when the DaemonSet is gone, and what they are for is done.
	finalizeAfter = "10s"
	// priorityClassName lets the pod start where others do not: a kubelet short of disk or memory refuses every pod below
	// it, and where no slot for pods is left another one makes room.
	priorityClassName = "system-node-critical"
)

// Task says what to clean on every node.
type Task struct {
	// Upstreams are the upstreams whose configuration goes.
	Upstreams []string
	// All says that the configuration of all upstreams goes. Upstreams is then not looked at.
	All bool
}

// DaemonSet returns the DaemonSet that does the task on every node that can run pods; image is the reference of the
// image that has `registry-cache clean`. A task without upstreams that is not for all is an error: it would clean nothing.
func DaemonSet(task Task, image string) (*appsv1.DaemonSet, error) {
	if len(task.Upstreams) == 0 && !task.All {
		return nil, errors.New("no upstream to clean given")
	}
	if image == "" {
		return nil, errors.New("no cleaner image given")
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:        v1alpha3.CleanerDaemonSet,
			Namespace:   metav1.NamespaceSystem,
			Labels:      Labels(),
			Annotations: map[string]string{resourcesv1alpha1.FinalizeDeletionAfter: finalizeAfter},
		},
		Spec: appsv1.DaemonSetSpec{
			RevisionHistoryLimit: ptr.To[int32](1),
			Selector:             &metav1.LabelSelector{MatchLabels: Labels()},
			UpdateStrategy:       updateStrategy(),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: Labels()},
				Spec:       podSpec(task, image),
			},
		},
	}, nil
}

// updateStrategy lets another task begin on all nodes at once. By default one pod that is not available, such as the one on
// a node that is not ready, would keep all the others from being replaced.
func updateStrategy() appsv1.DaemonSetUpdateStrategy {
	return appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromString("100%"))},
	}
}

// Labels are the labels of the DaemonSet and its pods.
func Labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": v1alpha3.CleanerDaemonSet, "app.kubernetes.io/part-of": "registry-cache"}
}

func podSpec(task Task, image string) corev1.PodSpec {
	return corev1.PodSpec{
		PriorityClassName:             priorityClassName,
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](5),
		// A node that is tainted, cordoned or dedicated to one workload pulls images too.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		SecurityContext: &corev1.PodSecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		InitContainers: []corev1.Container{cleanContainer(task, image)},
		Containers:     []corev1.Container{pauseContainer(image)},
		Volumes:        volumes(),
	}
}

// cleanContainer runs as root, because the files belong to root and systemd listens to nobody else, but without any
// capability and with three directories of the host only.
func cleanContainer(task Task, image string) corev1.Container {
	c := container(cleanName, image, arguments(task))
	c.SecurityContext.RunAsUser = ptr.To[int64](0)
	c.SecurityContext.RunAsNonRoot = ptr.To(false)
	c.VolumeMounts = volumeMounts()
	return c
}

// pauseContainer keeps the pod, and with it the fact that the node is clean, until the DaemonSet goes.
func pauseContainer(image string) corev1.Container {
	c := container("pause", image, []string{"pause"})
	c.SecurityContext.RunAsUser = ptr.To[int64](65532)
	c.SecurityContext.RunAsNonRoot = ptr.To(true)
	return c
}

func container(name, image string, args []string) corev1.Container {
	return corev1.Container{
		Name:            name,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            args,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("10m"),
				corev1.ResourceMemory: resource.MustParse("16Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// arguments returns the command line of `registry-cache clean`. Upstreams are sorted, so that the same task gives the
// same pods whatever the order it was found in.
func arguments(task Task) []string {
	args := []string{"clean", "--root=" + hostRoot}
	if task.All {
		return append(args, "--all")
	}
	for _, upstream := range slices.Sorted(slices.Values(task.Upstreams)) {
		args = append(args, "--upstream="+upstream)
	}
	return args
}
