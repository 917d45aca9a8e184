package gardener

import (
	"fmt"
	"time"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const (
	webhookPort = 10250
	healthPort  = 8081
	metricsPort = 8080

	configDir      = "/etc/gardener-resource-manager/config"
	certificateDir = "/etc/gardener-resource-manager/tls"
	targetDir      = "/etc/gardener-resource-manager/target"

	configKey     = "config.yaml"
	kubeconfigKey = "kubeconfig"
)

// syncPeriod is the shortest period that gardener-resource-manager accepts.
const syncPeriod = 15 * time.Second

// config returns the configuration file. Only the controllers that can not be switched off run (managed resources, their
// health and progress): none of the others serves an extension.
func (r ResourceManager) config() ([]byte, error) {
	config := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: resourcemanagerconfigv1alpha1.SchemeGroupVersion.String(),
			Kind:       "ResourceManagerConfiguration",
		},
		LeaderElection: componentbaseconfigv1alpha1.LeaderElectionConfiguration{LeaderElect: ptr.To(false)},
		Server:         resourceManagerServer(),
		LogLevel:       "info",
		LogFormat:      "text",
		Controllers: resourcemanagerconfigv1alpha1.ResourceManagerControllerConfiguration{
			ClusterID:       ptr.To("seed"),
			ManagedResource: resourcemanagerconfigv1alpha1.ManagedResourceControllerConfig{SyncPeriod: &metav1.Duration{Duration: syncPeriod}},
			Health:          resourcemanagerconfigv1alpha1.HealthControllerConfig{SyncPeriod: &metav1.Duration{Duration: syncPeriod}},
		},
	}
	if r.Class != "" {
		config.Controllers.ResourceClass = ptr.To(r.Class)
	} else {
		config.SourceClientConnection.Namespaces = []string{r.Namespace}
	}
	if len(r.TargetKubeconfig) > 0 {
		config.TargetClientConnection = &resourcemanagerconfigv1alpha1.ClientConnection{}
		config.TargetClientConnection.Kubeconfig = targetDir + "/" + kubeconfigKey
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of %s: %w", resourceManagerName, err)
	}
	return data, nil
}

func resourceManagerServer() resourcemanagerconfigv1alpha1.ServerConfiguration {
	return resourcemanagerconfigv1alpha1.ServerConfiguration{
		Webhooks: resourcemanagerconfigv1alpha1.HTTPSServer{
			Server: resourcemanagerconfigv1alpha1.Server{Port: webhookPort},
			TLS:    resourcemanagerconfigv1alpha1.TLSServer{ServerCertDir: certificateDir},
		},
		HealthProbes: &resourcemanagerconfigv1alpha1.Server{Port: healthPort},
		Metrics:      &resourcemanagerconfigv1alpha1.Server{Port: metricsPort},
	}
}
