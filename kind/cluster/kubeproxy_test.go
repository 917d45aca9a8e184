package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// kubeadmCluster returns a cluster as kubeadm leaves it, with the given mode.
func kubeadmCluster(mode string, funcs interceptor.Funcs) *Cluster {
	meta := metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}
	config := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{
		"config.conf":     "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: " + mode + "\nconntrack:\n  maxPerCore: 0\n",
		"kubeconfig.conf": "untouched",
	}}
	return &Cluster{client: fake.NewClientBuilder().WithObjects(config, &appsv1.DaemonSet{ObjectMeta: meta}).WithInterceptorFuncs(funcs).Build()}
}

// kubeProxyState returns the configured mode and the annotation of the pods.
func (c *Cluster) kubeProxyState(t *testing.T) (mode, annotation string, config corev1.ConfigMap) {
	t.Helper()
	key := client.ObjectKey{Namespace: "kube-system", Name: "kube-proxy"}
	var proxy appsv1.DaemonSet
	if err := errors.Join(c.client.Get(t.Context(), key, &config), c.client.Get(t.Context(), key, &proxy)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(config.Data["config.conf"]) {
		if value, ok := strings.CutPrefix(line, "mode: "); ok {
			mode = strings.TrimSpace(value)
		}
	}
	return mode, proxy.Spec.Template.Annotations[kubeProxyAnnotation], config
}

func TestApplyKubeProxyMode(t *testing.T) {
	for _, tc := range []struct {
		name, from      string
		modes           []string
		mode, annotated string
	}{
		{"left alone", "nftables", []string{""}, "nftables", ""},
		{"as it is", "nftables", []string{"nftables"}, "nftables", ""},
		{"kube-proxy's default is iptables", `""`, []string{"iptables"}, `""`, ""},
		{"another mode", "nftables", []string{"iptables"}, "iptables", "iptables"},
		{"there and back", "nftables", []string{"iptables", "nftables"}, "nftables", "nftables"},
		{"twice", "nftables", []string{"iptables", "iptables"}, "iptables", "iptables"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := kubeadmCluster(tc.from, interceptor.Funcs{})
			for _, mode := range tc.modes {
				if err := c.applyKubeProxyMode(t.Context(), mode); err != nil {
					t.Fatal(err)
				}
			}
			mode, annotation, config := c.kubeProxyState(t)
			if mode != tc.mode || annotation != tc.annotated {
				t.Errorf("mode %s, pods annotated %q, want %s and %q", mode, annotation, tc.mode, tc.annotated)
			}
			if !strings.Contains(config.Data["config.conf"], "maxPerCore: 0") || config.Data["kubeconfig.conf"] != "untouched" {
				t.Errorf("more than the mode has changed: %v", config.Data)
			}
		})
	}
}

// TestKubeProxyAfterAKill covers a process that was killed after it wrote the configuration and
// before it replaced the pods.
func TestKubeProxyAfterAKill(t *testing.T) {
	killed := errors.New("killed")
	dead := true
	c := kubeadmCluster("nftables", interceptor.Funcs{
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if dead {
				return killed
			}
			return next.Patch(ctx, obj, patch, opts...)
		},
	})
	if err := c.applyKubeProxyMode(t.Context(), "iptables"); !errors.Is(err, killed) {
		t.Fatalf("error %v, want %v", err, killed)
	}
	dead = false
	if err := c.applyKubeProxyMode(t.Context(), "iptables"); err != nil {
		t.Fatal(err)
	}
	if mode, annotation, _ := c.kubeProxyState(t); mode != "iptables" || annotation != "iptables" {
		t.Errorf("mode %s, pods annotated %q: those with the old rules stay", mode, annotation)
	}
}
