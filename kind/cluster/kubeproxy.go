package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	kubeProxyName = "kube-proxy"
	// kubeProxyFile is where kubeadm keeps the configuration in the ConfigMap.
	kubeProxyFile = "config.conf"
	// kubeProxyMark is an annotation of the ConfigMap, and of the pods that have read it, with the mode that we have set.
	kubeProxyMark = "registry-cache.testbed/kube-proxy-mode"
)

// applyKubeProxyMode brings kube-proxy to the mode, and its pods to the configuration; whoever waits for the DaemonSet afterwards
// waits for that. kube-proxy itself removes the rules of the mode before.
//
// The mark is written with the configuration, so that one who was killed in between leaves a trace of what is still to be done.
func (c *Cluster) applyKubeProxyMode(ctx context.Context, mode string) error {
	if mode == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: "kube-system", Name: kubeProxyName}
	var config corev1.ConfigMap
	if err := c.client.Get(ctx, key, &config); err != nil {
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
	mark, ok := config.Annotations[kubeProxyMark]
	if !ok {
		return nil // as kubeadm made it
	}
	var proxy appsv1.DaemonSet
	if err := c.client.Get(ctx, key, &proxy); err != nil {
		return fmt.Errorf("reading kube-proxy's DaemonSet: %w", err)
	}
	before := proxy.DeepCopy()
	if !markPods(&proxy, mark) {
		return nil
	}
	if err := c.client.Patch(ctx, &proxy, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("restarting kube-proxy: %w", err)
	}
	return nil
}

// setKubeProxyMode changes the mode in the ConfigMap, and marks it; it says whether there was something to change.
func setKubeProxyMode(config *corev1.ConfigMap, mode string) (changed bool, err error) {
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(config.Data[kubeProxyFile]), &settings); err != nil {
		return false, fmt.Errorf("reading kube-proxy's configuration: %w", err)
	}
	if settings == nil {
		return false, fmt.Errorf("kube-proxy has no configuration in %s of its ConfigMap", kubeProxyFile)
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
	if config.Annotations == nil {
		config.Annotations = map[string]string{}
	}
	config.Annotations[kubeProxyMark] = mode
	return true, nil
}

// markPods says whether pods with another mark have to be replaced.
func markPods(proxy *appsv1.DaemonSet, mark string) bool {
	template := &proxy.Spec.Template
	if template.Annotations[kubeProxyMark] == mark {
		return false
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[kubeProxyMark] = mark
	return true
}
