package gardener

import (
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	resourceManagerName   = "gardener-resource-manager"
	certificateSecretName = resourceManagerName + "-server"
	targetSecretName      = resourceManagerName + "-target"
)

// objects returns all that the resource manager needs except its certificate, in the order of application.
func (r ResourceManager) objects() ([]client.Object, error) {
	config, err := r.config()
	if err != nil {
		return nil, err
	}
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: r.meta(resourceManagerName)},
		&corev1.ConfigMap{ObjectMeta: r.meta(resourceManagerName), Data: map[string]string{configKey: string(config)}},
	}
	objects = append(objects, r.rbac()...)
	if len(r.TargetKubeconfig) > 0 {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: r.meta(targetSecretName),
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{kubeconfigKey: r.TargetKubeconfig},
		})
	}
	return append(objects, r.deployment(config)), nil
}

// rbac returns the permissions in the seed: for a shoot's resource manager a Role for what it reads and writes there, for
// one whose target is the seed all permissions, as in a real seed, since it creates whatever a chart contains.
func (r ResourceManager) rbac() []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: resourceManagerName}}
	if len(r.TargetKubeconfig) == 0 {
		return []client.Object{&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: resourceManagerName + "-" + r.Namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   subjects,
		}}
	}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: r.meta(resourceManagerName), Rules: sourceRules()},
		&rbacv1.RoleBinding{
			ObjectMeta: r.meta(resourceManagerName),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: resourceManagerName},
			Subjects:   subjects,
		},
	}
}

// sourceRules are those of gardener's pkg/component/gardener/resourcemanager without the ones for leader election.
func sourceRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{resourcesv1alpha1.SchemeGroupVersion.Group},
			Resources: []string{"managedresources", "managedresources/status"},
			Verbs:     []string{"get", "list", "watch", "update", "patch"},
		},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

func (r ResourceManager) deployment(config []byte) *appsv1.Deployment {
	args := []string{"--config=" + configDir + "/" + configKey}
	pod := podSpec(resourceManagerName, r.Image, args)
	container := &pod.Containers[0]
	container.ReadinessProbe = httpProbe("/readyz", healthPort)
	mount(&pod, configDir, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: resourceManagerName},
	}})
	mount(&pod, certificateDir, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: certificateSecretName}})
	if len(r.TargetKubeconfig) > 0 {
		mount(&pod, targetDir, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: targetSecretName}})
	}
	checksum := utils.ComputeSHA256Hex(append(append([]byte{}, config...), r.TargetKubeconfig...))
	manager := deployment(r.Namespace, resourceManagerName, pod, map[string]string{"checksum/config": checksum})
	if r.Stopped {
		manager.Spec.Replicas = ptr.To[int32](0)
	}
	return manager
}

func (r ResourceManager) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.Namespace, Name: name, Labels: map[string]string{"app": resourceManagerName}}
}
