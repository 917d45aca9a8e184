package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// kubeProxy is the key of kube-proxy's DaemonSet and of its ConfigMap.
var kubeProxy = client.ObjectKey{Namespace: "kube-system", Name: "kube-proxy"}

const (
	// kubeProxyFile is the key of the configuration in kubeadm's ConfigMap.
	kubeProxyFile = "config.conf"
	// kubeProxyAnnotation is on the ConfigMap and on the pods that have read it. Its value is the mode
	// that the testbed has set.
	kubeProxyAnnotation = "registry-cache.testbed/kube-proxy-mode"
)

// applyKubeProxyMode sets kube-proxy's mode and replaces its pods if they run with another mode.
// Callers must then wait for the DaemonSet. kube-proxy removes the rules of its previous mode.
//
// The annotation is written together with the configuration. If the process is killed before it has
// replaced the pods, the next call sees the difference and replaces them.
func (c *Cluster) applyKubeProxyMode(ctx context.Context, mode string) error {
	if mode == "" {
		return nil
	}
	var config corev1.ConfigMap
	if err := c.client.Get(ctx, kubeProxy, &config); err != nil {
		return fmt.Errorf("reading kube-proxy's configuration: %w", err)
	}
	changed, err := setKubeProxyMode(&config, mode)
	if err != nil {
		return err
	}
	if changed {
		progress.Note(ctx, "kube-proxy: %s", mode)
		if err := c.client.Update(ctx, &config); err != nil {
			return fmt.Errorf("changing kube-proxy's configuration: %w", err)
		}
	}
	applied, ok := config.Annotations[kubeProxyAnnotation]
	if !ok {
		return nil // the testbed has never changed the mode
	}
	var proxy appsv1.DaemonSet
	if err := c.client.Get(ctx, kubeProxy, &proxy); err != nil {
		return fmt.Errorf("reading kube-proxy's DaemonSet: %w", err)
	}
	before, template := proxy.DeepCopy(), &proxy.Spec.Template
	if template.Annotations[kubeProxyAnnotation] == applied {
		return nil
	}
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, kubeProxyAnnotation, applied)
	if err := c.client.Patch(ctx, &proxy, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("restarting kube-proxy: %w", err)
	}
	return nil
}

func setKubeProxyMode(config *corev1.ConfigMap, mode string) (changed bool, err error) {
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(config.Data[kubeProxyFile]), &settings); err != nil {
		return false, fmt.Errorf("reading kube-proxy's configuration: %w", err)
	}
	if settings == nil {
		return false, fmt.Errorf("kube-proxy's ConfigMap has no %s", kubeProxyFile)
	}
	present, _ := settings["mode"].(string)
	if present == mode || present == "" && mode == "iptables" { // kube-proxy's default
		return false, nil
	}
	settings["mode"] = mode
	data, err := yaml.Marshal(settings)
	if err != nil {
		return false, fmt.Errorf("encoding kube-proxy's configuration: %w", err)
	}
	config.Data[kubeProxyFile] = string(data)
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, kubeProxyAnnotation, mode)
	return true, nil
}
