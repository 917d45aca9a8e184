package gardener

import (
	"context"
	"fmt"
	"path"

	"github.com/gardener/gardener/pkg/utils/secrets"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// apply applies the objects in order by server-side apply as FieldManager, and takes over fields
// that others own. The error names the object that failed; the objects before it remain applied.
func apply(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		configuration, err := applyConfiguration(object, c.Scheme())
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration),
			client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", configuration.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// applyConfiguration returns the object without its status.
func applyConfiguration(object client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
	}
	configuration := &unstructured.Unstructured{Object: content}
	configuration.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return configuration, nil
}

// podSpec returns the spec of a pod with one container, with only the rights that a Go binary in an
// empty image needs. The image is never pulled, so a missing image shows as ErrImageNeverPull.
func podSpec(name, image string, args ...string) corev1.PodSpec {
	nonRoot := ptr.To[int64](65532) // owns no files
	return corev1.PodSpec{
		ServiceAccountName: name,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: nonRoot, RunAsGroup: nonRoot, FSGroup: nonRoot,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:            name,
			Image:           image,
			ImagePullPolicy: corev1.PullNever,
			Args:            args,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem:   ptr.To(true),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		// Keep this short: when a namespace is deleted, Kubernetes waits for half of this period before
		// it checks the pods again (estimateGracefulTermination).
		TerminationGracePeriodSeconds: ptr.To[int64](2),
		// The testbed's seed has one node, the control plane.
		Tolerations: []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}},
	}
}

// mount adds a read-only volume, named after the last element of dir, to the pod's only container.
func mount(pod *corev1.PodSpec, dir string, source corev1.VolumeSource) {
	name := path.Base(dir)
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	container := &pod.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: true})
}

func readinessProbe(port int32) *corev1.Probe {
	get := &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(port)}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}, PeriodSeconds: 1}
}

// deployment returns a Deployment that never runs two pods at once: its pods elect no leader.
func deployment(namespace, name string, pod corev1.PodSpec, annotations map[string]string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas:             ptr.To[int32](1),
			RevisionHistoryLimit: ptr.To[int32](1),
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: pod},
		},
	}
}

// ensureCertificate creates a Secret with a self-signed certificate for a Service of the Secret's
// namespace, or reads the Secret if it exists.
func ensureCertificate(ctx context.Context, c client.Client, secret *corev1.Secret, service string) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if !apierrors.IsNotFound(err) {
		return err // nil if it exists
	}
	server := &secrets.CertificateSecretConfig{
		Name: service, CommonName: service, CertType: secrets.ServerCert, DNSNames: []string{service, service + "." + secret.Namespace + ".svc"},
	}
	certificate, err := server.GenerateCertificate()
	if err != nil {
		return fmt.Errorf("generate a serving certificate for %s: %w", service, err)
	}
	secret.Data = certificate.SecretData()
	if err := c.Create(ctx, secret); err != nil {
		return fmt.Errorf("create the serving certificate %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}
