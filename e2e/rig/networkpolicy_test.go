package rig

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func pod(namespace, name, ip string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}}}}},
		Status:     corev1.PodStatus{PodIP: ip},
	}
}

// parse returns the policies in a list of YAML documents, as the API server stores them.
func parse(t *testing.T, text string) []networkingv1.NetworkPolicy {
	t.Helper()
	var policies []networkingv1.NetworkPolicy
	for document := range strings.SplitSeq(text, "---\n") {
		policy := networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		policies = append(policies, policy)
	}
	return policies
}

const denyAll = `metadata: {name: deny-all, namespace: a}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
`

func TestAllowed(t *testing.T) {
	server, scraper := pod("a", "server", "10.0.0.1", map[string]string{"app": "server"}), pod("b", "scraper", "10.0.0.2", map[string]string{"app": "scraper"})
	other := pod("b", "other", "10.0.0.3", map[string]string{"app": "other"})
	same := pod("a", "same", "10.0.0.4", map[string]string{"app": "scraper"})
	host := pod("a", "host", "192.168.0.1", nil)
	host.Spec.HostNetwork = true
	node, err := AddressPeer("192.168.0.2")
	if err != nil {
		t.Fatal(err)
	}
	ingress := func(rule string) string {
		return denyAll + "---\nmetadata: {name: allow, namespace: a}\nspec: {podSelector: {matchLabels: {app: server}}, policyTypes: [Ingress], ingress: [" + rule + "]}\n"
	}
	fromScraper := ingress("{from: [{namespaceSelector: {matchLabels: {name: b}}, podSelector: {matchLabels: {app: scraper}}}], ports: [{port: metrics, protocol: TCP}]}")
	for name, test := range map[string]struct {
		policies string
		from, to Peer
		port     networkingv1.NetworkPolicyPort
		refusal  string // a part of the error, or empty if the connection is allowed
	}{
		"nothing selects the pod":        {"metadata: {name: x, namespace: b}", PodPeer(same), PodPeer(server), TCP(1), ""},
		"deny all":                       {denyAll, PodPeer(scraper), PodPeer(server), TCP(8080), "Ingress of pod a/server: none of the policies [deny-all] allows pod b/scraper, port 8080"},
		"deny all is for both ways":      {denyAll, PodPeer(server), node, TCP(443), "Egress of pod a/server"},
		"the host's network is exempt":   {denyAll, PodPeer(host), node, TCP(443), ""},
		"selected pod, named port":       {fromScraper, PodPeer(scraper), PodPeer(server), TCP(8080), ""},
		"selected pod, other port":       {fromScraper, PodPeer(scraper), PodPeer(server), TCP(8081), "[allow deny-all]"},
		"selected pod, other protocol":   {fromScraper, PodPeer(scraper), PodPeer(server), UDP(8080), "port 8080"},
		"other pod":                      {fromScraper, PodPeer(other), PodPeer(server), TCP(8080), "pod b/other"},
		"same labels, other namespace":   {fromScraper, PodPeer(same), PodPeer(server), TCP(8080), "Egress of pod a/same"},
		"an address is no selected pod":  {fromScraper, node, PodPeer(server), TCP(8080), "192.168.0.2"},
		"no peers are everything":        {ingress("{ports: [{port: 8000, endPort: 9000, protocol: TCP}]}"), node, PodPeer(server), TCP(9000), ""},
		"beyond the range":               {ingress("{ports: [{port: 8000, endPort: 9000, protocol: TCP}]}"), node, PodPeer(server), TCP(9001), "9001"},
		"a block":                        {ingress("{from: [{ipBlock: {cidr: 192.168.0.0/16}}]}"), node, PodPeer(server), TCP(1), ""},
		"an exception of a block":        {ingress("{from: [{ipBlock: {cidr: 192.168.0.0/16, except: [192.168.0.2/32]}}]}"), node, PodPeer(server), TCP(1), "none"},
		"without namespaces: its own":    {ingress("{from: [{podSelector: {}}]}"), PodPeer(scraper), PodPeer(server), TCP(1), "pod b/scraper"},
		"an empty rule allows all":       {ingress("{}"), node, PodPeer(server), UDP(53), ""},
		"no rule allows nothing":         {ingress(""), node, PodPeer(server), UDP(53), "none"},
		"host network is not selectable": {ingress("{from: [{podSelector: {}}]}"), PodPeer(host), PodPeer(server), TCP(1), "none"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := NetworkRules{
				Policies: parse(t, test.policies),
				Namespaces: []corev1.Namespace{
					{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"name": "a"}}},
					{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"name": "b"}}},
				},
			}
			err := rules.Allowed(test.from, test.to, test.port)
			if (err == nil) != (test.refusal == "") || err != nil && !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("got %v, want %q", err, test.refusal)
			}
		})
	}
}
