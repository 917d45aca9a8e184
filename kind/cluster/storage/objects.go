package storage

import (
	"k8s.io/apimachinery/pkg/runtime"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	metav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	rbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	storagev1 "k8s.io/client-go/applyconfigurations/storage/v1"

	rbac "k8s.io/api/rbac/v1"
	storageapi "k8s.io/api/storage/v1"

	core "k8s.io/api/core/v1"
)

const (
	// Namespace is where the provisioner and its helper pods run.
	Namespace = "local-path-storage"
	// Provisioner is the name of the Deployment.
	Provisioner = "local-path-provisioner"
	// ClassName is the default StorageClass, and ClassProvisioner who provisions its volumes.
	ClassName        = "standard"
	ClassProvisioner = "rancher.io/local-path"

	serviceAccount = "local-path-provisioner-service-account"
	role           = "local-path-provisioner-role"
	binding        = "local-path-provisioner-bind"
	config         = "local-path-config"
)

// Objects returns what to apply, in this order. image is local-path-provisioner, helper an image with a shell.
func Objects(image, helper string) ([]runtime.ApplyConfiguration, error) {
	configMap, err := configMap(helper)
	if err != nil {
		return nil, err
	}
	return []runtime.ApplyConfiguration{
		corev1.Namespace(Namespace),
		corev1.ServiceAccount(serviceAccount, Namespace),
		namespacedRole(),
		clusterRole(),
		rbacv1.RoleBinding(binding, Namespace).WithRoleRef(roleRef("Role")).WithSubjects(subject()),
		rbacv1.ClusterRoleBinding(binding).WithRoleRef(roleRef("ClusterRole")).WithSubjects(subject()),
		configMap,
		deployment(image, helper),
		storageClass(),
	}, nil
}

func namespacedRole() *rbacv1.RoleApplyConfiguration {
	return rbacv1.Role(role, Namespace).WithRules(
		rbacv1.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("get", "list", "watch", "create", "patch", "update", "delete"),
	)
}

func clusterRole() *rbacv1.ClusterRoleApplyConfiguration {
	return rbacv1.ClusterRole(role).WithRules(
		rbacv1.PolicyRule().WithAPIGroups("").
			WithResources("nodes", "persistentvolumeclaims", "configmaps", "pods", "pods/log").
			WithVerbs("get", "list", "watch"),
		rbacv1.PolicyRule().WithAPIGroups("").WithResources("persistentvolumes").
			WithVerbs("get", "list", "watch", "create", "patch", "update", "delete"),
		rbacv1.PolicyRule().WithAPIGroups("").WithResources("events").WithVerbs("create", "patch"),
		rbacv1.PolicyRule().WithAPIGroups(storageapi.GroupName).WithResources("storageclasses").WithVerbs("get", "list", "watch"),
	)
}

func roleRef(kind string) *rbacv1.RoleRefApplyConfiguration {
	return rbacv1.RoleRef().WithAPIGroup(rbac.GroupName).WithKind(kind).WithName(role)
}

func subject() *rbacv1.SubjectApplyConfiguration {
	return rbacv1.Subject().WithKind(rbac.ServiceAccountKind).WithName(serviceAccount).WithNamespace(Namespace)
}

func storageClass() *storagev1.StorageClassApplyConfiguration {
	return storagev1.StorageClass(ClassName).
		WithAnnotations(map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}).
		WithProvisioner(ClassProvisioner).
		WithVolumeBindingMode(storageapi.VolumeBindingWaitForFirstConsumer).
		WithReclaimPolicy(core.PersistentVolumeReclaimDelete)
}

func labels() map[string]string { return map[string]string{"app": Provisioner} }

func selector() *metav1.LabelSelectorApplyConfiguration {
	return metav1.LabelSelector().WithMatchLabels(labels())
}
