package cache

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// networkPolicy lets the container runtime of every node reach the cache. From Kubernetes 1.33 on,
// Gardener denies all traffic in kube-system, even between a node and a pod of another node
// (NetworkPolicy gardener.cloud--deny-all). The metrics port stays closed: Gardener's own policy
// opens it for the control plane by a label of the pod.
func networkPolicy(cache v1alpha3.RegistryCache) *networkingv1.NetworkPolicy {
	port, protocol := intstr.FromInt32(v1alpha3.CachePort), corev1.ProtocolTCP
	return &networkingv1.NetworkPolicy{
		ObjectMeta: objectMeta(cache.Upstream),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: labels(cache.Upstream)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				Ports: []networkingv1.NetworkPolicyPort{{Port: &port, Protocol: &protocol}},
			}},
		},
	}
}
