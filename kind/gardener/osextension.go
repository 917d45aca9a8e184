package gardener

import (
	"context"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/osextension"
)

const (
	osExtensionName      = "gardener-extension-os-" + osextension.Type
	osExtensionNamespace = "extension-os-" + osextension.Type
)

// OSExtension is the operating system extension of the testbed's machines (package osextension).
type OSExtension struct {
	Image string // the reference of its image, which must already be on the seed's node
}

// Deploy creates or updates the extension in its own namespace.
func (o OSExtension) Deploy(ctx context.Context, seed client.Client) error {
	if err := apply(ctx, seed, o.objects()...); err != nil {
		return fmt.Errorf("deploy the operating system extension: %w", err)
	}
	return nil
}

// Wait waits up to two minutes until the extension has rolled out and is available.
func (o OSExtension) Wait(ctx context.Context, seed client.Client) error {
	return WaitForDeployment(ctx, seed, client.ObjectKey{Namespace: osExtensionNamespace, Name: osExtensionName})
}

func (o OSExtension) objects() []client.Object {
	meta := metav1.ObjectMeta{Namespace: osExtensionNamespace, Name: osExtensionName, Labels: map[string]string{"app": osExtensionName}}
	pod := podSpec(osExtensionName, o.Image)
	pod.Containers[0].ReadinessProbe = readinessProbe(osextension.HealthPort)
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:   osExtensionNamespace,
			Labels: map[string]string{v1beta1constants.GardenRole: v1beta1constants.GardenRoleExtension},
		}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: osExtensionName}, Rules: osExtensionRules()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: osExtensionName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: osExtensionName},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: osExtensionNamespace, Name: osExtensionName}},
		},
		deployment(osExtensionNamespace, osExtensionName, pod, nil),
	}
}

// osExtensionRules returns what gardener's OperatingSystemConfig controller needs: it reconciles
// the configs with their status and finalizer, reads the Cluster, reads the Namespace to check
// whether it belongs to a shoot, and stores user data in a Secret that it gets by name.
func osExtensionRules() []rbacv1.PolicyRule {
	group := []string{extensionsv1alpha1.SchemeGroupVersion.Group}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
		{
			APIGroups: group,
			Resources: []string{"operatingsystemconfigs", "operatingsystemconfigs/status", "operatingsystemconfigs/finalizers"},
			Verbs:     []string{"get", "list", "watch", "update", "patch"},
		},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "update", "patch"}},
	}
}
