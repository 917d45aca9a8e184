package gardener

import (
	"context"
	"fmt"
	"time"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	resourceManagerName   = "gardener-resource-manager"
	certificateSecretName = resourceManagerName + "-server"
	targetSecretName      = resourceManagerName + "-target"

	configDir      = "/etc/gardener-resource-manager/config"
	certificateDir = "/etc/gardener-resource-manager/tls"
	targetDir      = "/etc/gardener-resource-manager/target"

	configKey, kubeconfigKey             = "config.yaml", "kubeconfig"
	webhookPort, healthPort, metricsPort = 10250, 8081, 8080
)

// ResourceManager is a gardener-resource-manager for one class of ManagedResources and one target.
type ResourceManager struct {
	Namespace string // of the seed in which it runs
	Image     string // the reference of its image, which must already be on the seed's node
	// Class is the class of the ManagedResources that it handles. Empty means the shoot's
	// ManagedResources, which are in Namespace and have no class.
	Class string
	// TargetKubeconfig is for the cluster to which the resources are applied, with an address that a
	// pod of the seed can reach. Empty means the seed itself.
	TargetKubeconfig []byte
	Stopped          bool // zero replicas, as in the control plane of a hibernated shoot
}

// SeedResourceManager returns the resource manager for ManagedResources of class seed. With these,
// gardenlet installs extensions and the referenced resources of a shoot.
func SeedResourceManager(image string) ResourceManager {
	return ResourceManager{Namespace: GardenNamespace, Image: image, Class: v1beta1constants.SeedResourceManagerClass}
}

// Deploy creates or updates everything that the resource manager needs. The namespace must exist.
// The serving certificate is generated once and then kept.
func (r ResourceManager) Deploy(ctx context.Context, seed client.Client) error {
	// No webhook is registered, but gardener-resource-manager always starts the webhook server, and
	// exits if the certificate is missing.
	if err := ensureCertificate(ctx, seed, r.certificate(), resourceManagerName); err != nil {
		return err
	}
	objects, err := r.objects()
	if err != nil {
		return err
	}
	if err := apply(ctx, seed, objects...); err != nil {
		return fmt.Errorf("deploy %s in namespace %s: %w", resourceManagerName, r.Namespace, err)
	}
	return nil
}

// Wait waits up to two minutes until the resource manager has rolled out and is available.
func (r ResourceManager) Wait(ctx context.Context, seed client.Client) error {
	return WaitForDeployment(ctx, seed, client.ObjectKey{Namespace: r.Namespace, Name: resourceManagerName})
}

// WaitStopped waits up to two minutes until no pod of the resource manager is left.
func (r ResourceManager) WaitStopped(ctx context.Context, seed client.Reader) error {
	failure := fmt.Sprintf("%s in namespace %s has not stopped", resourceManagerName, r.Namespace)
	return Poll(ctx, rolloutTimeout, failure, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		err := seed.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels{"app": resourceManagerName})
		if len(pods.Items) > 0 {
			return fmt.Errorf("pod %s still exists", pods.Items[0].Name)
		}
		return err
	})
}

// Destroy deletes what Deploy created. Missing objects are not an error.
func (r ResourceManager) Destroy(ctx context.Context, seed client.Client) error {
	objects, err := r.objects()
	if err != nil {
		return err
	}
	for _, object := range append(objects, r.certificate()) {
		if err := seed.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("destroy %s: delete %s: %w", resourceManagerName, client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

func (r ResourceManager) certificate() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: certificateSecretName}}
}

// objects returns what the resource manager needs except its certificate. Apply them in this order.
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
		data := map[string][]byte{kubeconfigKey: r.TargetKubeconfig}
		objects = append(objects, &corev1.Secret{ObjectMeta: r.meta(targetSecretName), Type: corev1.SecretTypeOpaque, Data: data})
	}
	return append(objects, r.deployment(config)), nil
}

// rbac returns the permissions in the seed: a Role for a shoot's resource manager, or cluster-admin
// if the seed is the target, since charts may contain any object.
func (r ResourceManager) rbac() []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: resourceManagerName}}
	if len(r.TargetKubeconfig) == 0 {
		return []client.Object{&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: resourceManagerName + "-" + r.Namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   subjects,
		}}
	}
	// As in gardener's pkg/component/gardener/resourcemanager, but without leader election.
	update := []string{"get", "list", "watch", "update", "patch"}
	rules := []rbacv1.PolicyRule{
		{
			APIGroups: []string{resourcesv1alpha1.SchemeGroupVersion.Group},
			Resources: []string{"managedresources", "managedresources/status"}, Verbs: update,
		},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: update},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: r.meta(resourceManagerName), Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: r.meta(resourceManagerName),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: resourceManagerName},
			Subjects:   subjects,
		},
	}
}

func (r ResourceManager) deployment(config []byte) *appsv1.Deployment {
	pod := podSpec(resourceManagerName, r.Image, "--config="+configDir+"/"+configKey)
	pod.Containers[0].ReadinessProbe = readinessProbe(healthPort)
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

// config returns the configuration file. It enables the controllers that cannot be disabled
// (managed resources, their health and progress) and those that affect extensions.
func (r ResourceManager) config() ([]byte, error) {
	period := &metav1.Duration{Duration: time.Minute} // as gardenlet sets it
	config := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: resourcemanagerconfigv1alpha1.SchemeGroupVersion.String(), Kind: "ResourceManagerConfiguration",
		},
		LeaderElection: componentbaseconfigv1alpha1.LeaderElectionConfiguration{LeaderElect: ptr.To(false)},
		Server: resourcemanagerconfigv1alpha1.ServerConfiguration{
			Webhooks: resourcemanagerconfigv1alpha1.HTTPSServer{
				Server: resourcemanagerconfigv1alpha1.Server{Port: webhookPort},
				TLS:    resourcemanagerconfigv1alpha1.TLSServer{ServerCertDir: certificateDir},
			},
			HealthProbes: &resourcemanagerconfigv1alpha1.Server{Port: healthPort},
			Metrics:      &resourcemanagerconfigv1alpha1.Server{Port: metricsPort},
		},
		LogLevel:  "info",
		LogFormat: "text",
		Controllers: resourcemanagerconfigv1alpha1.ResourceManagerControllerConfiguration{
			ClusterID:       ptr.To("seed"),
			ManagedResource: resourcemanagerconfigv1alpha1.ManagedResourceControllerConfig{SyncPeriod: period},
			Health:          resourcemanagerconfigv1alpha1.HealthControllerConfig{SyncPeriod: period},
		},
	}
	if r.Class != "" {
		config.Controllers.ResourceClass = ptr.To(r.Class)
		config.Controllers.NetworkPolicy = networkPolicyController()
	} else {
		config.SourceClientConnection.Namespaces = []string{r.Namespace}
		// When a Secret or ConfigMap is removed from a ManagedResource, pods may still use it.
		// Without the collector, it would be deleted at once.
		config.Controllers.GarbageCollector = resourcemanagerconfigv1alpha1.GarbageCollectorControllerConfig{
			Enabled: true, SyncPeriod: &metav1.Duration{Duration: 12 * time.Hour}, // as gardenlet sets it
		}
	}
	if len(r.TargetKubeconfig) > 0 {
		config.TargetClientConnection = new(resourcemanagerconfigv1alpha1.ClientConnection)
		config.TargetClientConnection.Kubeconfig = targetDir + "/" + kubeconfigKey
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of %s: %w", resourceManagerName, err)
	}
	return data, nil
}
