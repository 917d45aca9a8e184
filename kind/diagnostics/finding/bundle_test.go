package finding

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const (
	host     = "alpha.upstream.test"
	cacheIP  = "10.96.0.7"
	endpoint = "http://" + cacheIP + ":5000"
	worker   = "registry-cache-shoot-worker"
)

var collected = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// objects contains everything that a test may change before it writes the bundle.
type objects struct {
	nodes      []corev1.Node
	service    *corev1.Service
	set        appsv1.StatefulSet
	pod        corev1.Pod
	slice      discoveryv1.EndpointSlice
	dns        discoveryv1.EndpointSlice
	config     extensionsv1alpha1.OperatingSystemConfig
	claim      corev1.PersistentVolumeClaim
	extension  extensionsv1alpha1.Extension
	cluster    *extensionsv1alpha1.Cluster
	deployment appsv1.Deployment
	// files maps names to contents, and overrides the files of the objects. "" removes a file.
	files map[string]string
}

// healthy returns a testbed without problems. It has one cache, and files of one worker.
func healthy() *objects {
	meta := metav1.ObjectMeta{
		Namespace: "kube-system", Name: "registry-alpha", Labels: map[string]string{v1alpha3.LabelUpstreamHost: "alpha"},
		Annotations: map[string]string{v1alpha3.AnnotationUpstream: host}, CreationTimestamp: metav1.NewTime(collected.Add(-time.Minute)),
	}
	pod := corev1.Pod{ObjectMeta: *meta.DeepCopy()}
	pod.Name, pod.OwnerReferences = "registry-alpha-0", []metav1.OwnerReference{{Kind: "StatefulSet", Name: "registry-alpha"}}
	slice := discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kube-system", Name: "registry-alpha-x", Labels: map[string]string{discoveryv1.LabelServiceName: "registry-alpha"},
	}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.5"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}}
	dns := *slice.DeepCopy()
	dns.Name, dns.Labels = "kube-dns-x", map[string]string{discoveryv1.LabelServiceName: "kube-dns"}
	status := `{"kind":"RegistryStatus","caches":[{"upstream":"` + host + `","endpoint":"` + endpoint + `","remoteURL":"http://` + host + `"}]}`
	extension := extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: bundle.ShootNamespace, Name: v1alpha3.ExtensionType}}
	extension.Spec.Type = v1alpha3.ExtensionType
	extension.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(status)}
	extension.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}
	return &objects{
		nodes:   []corev1.Node{node(worker, "172.18.0.3", "10.244.1.0/24"), node(worker+"2", "172.18.0.4", "10.244.2.0/24")},
		service: &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: cacheIP, ClusterIPs: []string{cacheIP}}},
		set:     appsv1.StatefulSet{ObjectMeta: meta},
		pod:     pod, slice: slice, dns: dns, extension: extension, config: configOf(),
		claim: corev1.PersistentVolumeClaim{ObjectMeta: meta, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
		deployment: appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "extension-registry-cache", Name: "gardener-extension-registry-cache"},
			Status:     appsv1.DeploymentStatus{ReadyReplicas: 1},
		},
		files: healthyFiles(),
	}
}

// dnsService returns the Service of CoreDNS.
func dnsService() corev1.Service {
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns", Labels: map[string]string{"k8s-app": "kube-dns"}},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"}},
	}
}

// configOf returns the OperatingSystemConfig of the nodes with the unit that the webhook adds.
func configOf() extensionsv1alpha1.OperatingSystemConfig {
	config := extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Namespace: bundle.ShootNamespace, Name: "original"}}
	config.Spec.Purpose = extensionsv1alpha1.OperatingSystemConfigPurposeReconcile
	config.Spec.Units = []extensionsv1alpha1.Unit{{Name: "containerd.service"}, {Name: bundle.ScriptUnit}}
	config.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}
	return config
}

func node(name, address, podCIDR string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: podCIDR, PodCIDRs: []string{podCIDR}}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// healthyFiles returns the files of the node and the upstream.
func healthyFiles() map[string]string {
	registry := nodeconfig.Registry{Upstream: host, Endpoint: endpoint, UpstreamURL: "http://" + host}
	var states strings.Builder
	for _, name := range append([]string{bundle.ScriptUnit}, units...) {
		fmt.Fprintf(&states, "Id=%s\nLoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nNRestarts=0\n\n", name)
	}
	return map[string]string{
		"faults.json":                   "[]",
		"node/" + worker + "/units.txt": states.String(),
		"node/" + worker + "/certs.d.txt": "/etc/containerd/certs.d:\n==> /etc/containerd/certs.d/" + host + "/hosts.toml <==\n" +
			hostsTOML(registry),
		"node/" + worker + "/" + bundle.ScriptUnit: nodeconfig.Unit([]nodeconfig.Registry{registry}, 0),
		"node/" + worker + "/probe.txt":            host + " " + endpoint + " 200 0.001 \n" + host + " http://" + host + " 200 0.002 \n",
		"node/" + worker + "/network.txt":          "default via 172.18.0.1 dev eth0\n10.244.2.0/24 via 172.18.0.4 dev eth0\n",
		"node/" + worker + "/disk.txt":             "Filesystem Size Used Avail Use% Mounted on\noverlay 10G 5G 5G 50% /\n",
		"upstream/" + host + "/state.txt":          "Up 3 minutes\n",
		"upstream/" + host + "/access.jsonl":       "",
	}
}

// write creates the bundle.
func (o *objects) write(t *testing.T) *bundle.Bundle {
	t.Helper()
	files := fstest.MapFS{}
	put := func(name string, all ...any) {
		var text strings.Builder
		for _, object := range all {
			content, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString("---\n" + string(content))
		}
		files[name] = &fstest.MapFile{Data: []byte(text.String())}
	}
	put("shoot/objects/nodes.yaml", o.nodes[0], o.nodes[1])
	if o.service != nil {
		put("shoot/objects/services.yaml", o.service, dnsService())
	}
	put("shoot/objects/statefulsets.yaml", o.set)
	put("shoot/objects/pods.yaml", o.pod)
	put("shoot/objects/endpointslices.yaml", o.slice, o.dns)
	put("seed/objects/operatingsystemconfigs.yaml", o.config)
	put("shoot/objects/persistentvolumeclaims.yaml", o.claim)
	put("seed/objects/nodes.yaml", node("registry-cache-seed-control-plane", "172.18.0.2", "10.244.0.0/24"))
	put("seed/objects/extensions.yaml", o.extension)
	put("seed/objects/deployments.yaml", o.deployment)
	if o.cluster != nil {
		put("seed/objects/clusters.yaml", o.cluster)
	}
	for name, content := range o.files {
		files[name] = &fstest.MapFile{Data: []byte(content)}
		if content == "" {
			delete(files, name)
		}
	}
	return bundle.Read(files, collected)
}

func record(t *testing.T, r accesslog.Record) string {
	t.Helper()
	content, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content) + "\n"
}
