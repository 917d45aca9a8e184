package rig

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// NetworkRules are the NetworkPolicies of a cluster, and the namespaces that their selectors can
// match. They decide whether a connection is allowed, according to the documentation of Kubernetes'
// API. They need no network, because the testbed's pod network does not enforce policies. Traffic
// between a pod and its own node gets no exception here, although most network plugins always allow
// it.
type NetworkRules struct {
	Policies   []networkingv1.NetworkPolicy
	Namespaces []corev1.Namespace
}

// Peer is one end of a connection: a pod of the cluster, or an address that is not a pod's.
type Peer struct {
	Pod     *corev1.Pod
	Address netip.Addr
}

// PodPeer returns the pod as a peer. A pod without an address matches no IP block.
func PodPeer(pod *corev1.Pod) Peer {
	address, _ := netip.ParseAddr(pod.Status.PodIP) // empty until the pod runs
	return Peer{Pod: pod, Address: address}
}

// AddressPeer returns the address of a node or of another machine as a peer.
func AddressPeer(address string) (Peer, error) {
	parsed, err := netip.ParseAddr(address)
	return Peer{Address: parsed}, err
}

// String returns a name for the peer.
func (p Peer) String() string {
	if p.Pod != nil {
		return "pod " + p.Pod.Namespace + "/" + p.Pod.Name
	}
	return p.Address.String()
}

// TCP returns the TCP port of a connection.
func TCP(number int32) networkingv1.NetworkPolicyPort { return port(corev1.ProtocolTCP, number) }

// UDP returns the UDP port of a connection.
func UDP(number int32) networkingv1.NetworkPolicyPort { return port(corev1.ProtocolUDP, number) }

func port(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: ptr.To(intstr.FromInt32(number))}
}

// Allowed returns nil if the policies allow connections to the port, otherwise an error that names
// the end that refuses and the policies that isolate it.
func (r NetworkRules) Allowed(from, to Peer, port networkingv1.NetworkPolicyPort) error {
	if err := r.Leaves(from, to, port); err != nil {
		return err
	}
	return r.Enters(from, to, port)
}

// Leaves is like Allowed, but checks only the policies of the connecting end.
func (r NetworkRules) Leaves(from, to Peer, port networkingv1.NetworkPolicyPort) error {
	return r.check(networkingv1.PolicyTypeEgress, from, to, to.Pod, port)
}

// Enters is like Allowed, but checks only the policies of the other end.
func (r NetworkRules) Enters(from, to Peer, port networkingv1.NetworkPolicyPort) error {
	return r.check(networkingv1.PolicyTypeIngress, to, from, to.Pod, port)
}

// check evaluates the policies of one end. server is the pod whose ports a policy can name, or nil.
func (r NetworkRules) check(direction networkingv1.PolicyType, end, other Peer, server *corev1.Pod, port networkingv1.NetworkPolicyPort) error {
	if end.Pod == nil || end.Pod.Spec.HostNetwork {
		return nil // policies select only pods with a network of their own
	}
	var isolating []string
	for _, policy := range r.Policies {
		if policy.Namespace != end.Pod.Namespace || !matches(&policy.Spec.PodSelector, end.Pod.Labels) || !isOf(policy, direction) {
			continue
		}
		isolating = append(isolating, policy.Name)
		for _, rule := range rulesOf(policy, direction) {
			if r.matchesPeer(policy.Namespace, rule.peers, other) && matchesPort(rule.ports, server, port) {
				return nil
			}
		}
	}
	if len(isolating) == 0 {
		return nil
	}
	slices.Sort(isolating)
	return fmt.Errorf("%s of %s: none of the policies %v allows %s, port %s", direction, end, isolating, other, port.Port.String())
}

// isOf reports whether the policy isolates its pods in this direction. The API server sets the
// types if a policy has none.
func isOf(policy networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	return slices.Contains(policy.Spec.PolicyTypes, direction)
}

type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func rulesOf(policy networkingv1.NetworkPolicy, direction networkingv1.PolicyType) []rule {
	var rules []rule
	if direction == networkingv1.PolicyTypeIngress {
		for _, ingress := range policy.Spec.Ingress {
			rules = append(rules, rule{ingress.From, ingress.Ports})
		}
		return rules
	}
	for _, egress := range policy.Spec.Egress {
		rules = append(rules, rule{egress.To, egress.Ports})
	}
	return rules
}

// matchesPeer reports whether one of the peers matches the other end. An empty list matches all.
func (r NetworkRules) matchesPeer(namespace string, peers []networkingv1.NetworkPolicyPeer, other Peer) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool {
		if peer.IPBlock != nil {
			return contains(peer.IPBlock, other.Address)
		}
		if other.Pod == nil || other.Pod.Spec.HostNetwork {
			return false
		}
		if peer.PodSelector != nil && !matches(peer.PodSelector, other.Pod.Labels) {
			return false
		}
		if peer.NamespaceSelector == nil {
			return other.Pod.Namespace == namespace
		}
		return slices.ContainsFunc(r.Namespaces, func(candidate corev1.Namespace) bool {
			return candidate.Name == other.Pod.Namespace && matches(peer.NamespaceSelector, candidate.Labels)
		})
	})
}

func contains(block *networkingv1.IPBlock, address netip.Addr) bool {
	within := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && address.IsValid() && prefix.Contains(address)
	}
	return within(block.CIDR) && !slices.ContainsFunc(block.Except, within)
}

// matchesPort reports whether one of the ports matches the connection's. An empty list matches all.
func matchesPort(ports []networkingv1.NetworkPolicyPort, server *corev1.Pod, port networkingv1.NetworkPolicyPort) bool {
	number := port.Port.IntVal
	return len(ports) == 0 || slices.ContainsFunc(ports, func(candidate networkingv1.NetworkPolicyPort) bool {
		if ptr.Deref(candidate.Protocol, corev1.ProtocolTCP) != *port.Protocol {
			return false
		}
		switch {
		case candidate.Port == nil:
			return true
		case candidate.Port.StrVal != "":
			return hasPort(server, candidate.Port.StrVal, number)
		default:
			return candidate.Port.IntVal <= number && number <= ptr.Deref(candidate.EndPort, candidate.Port.IntVal)
		}
	})
}

func hasPort(server *corev1.Pod, name string, number int32) bool {
	return server != nil && slices.ContainsFunc(server.Spec.Containers, func(container corev1.Container) bool {
		return slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.Name == name && port.ContainerPort == number })
	})
}

// matches reports whether the selector, which the API server has validated, selects the labels.
func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}
