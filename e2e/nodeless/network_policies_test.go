//go:build e2e

package nodeless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/bench/extension"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/internal/helmchart"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// scrapeLabel is a label of the pods of Gardener's Prometheus for seeds.
const scrapeLabel = "networking.resources.gardener.cloud/to-extensions-all-seed-scrape-targets"

// networkPolicies proves that Gardener's NetworkPolicies, with those of this extension, allow each
// connection that the extension and its caches need. It also proves that only the seed's Prometheus
// may scrape the extension. The scenario evaluates the policies itself, because no network enforces
// them here.
func networkPolicies() rig.Scenario {
	return rig.New("network-policies",
		rig.Prove("the seed's Prometheus may scrape the extension, another pod may not", proveScraping),
		rig.Prove("nodes reach caches, caches reach DNS, upstreams and each other", proveCachesReach),
	)
}

func proveScraping(ctx context.Context, p *rig.Run) {
	extension, ports := installService(ctx, p)
	prometheus := pod(ctx, p, gardener.GardenNamespace, map[string]string{scrapeLabel: "allowed"}, nil)
	other := pod(ctx, p, gardener.GardenNamespace, map[string]string{"app": "e2e-other"}, nil)
	p.Check(gardener.DeployNetworkPolicies(ctx, p.Session.Seed, gardener.GardenNamespace, extension.Namespace))
	metrics := rig.TCP(ports["metrics"])
	p.Await(ctx, "policies allow the seed's Prometheus to scrape the extension", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		err := policyRules(ctx, p, p.Session.Seed).Allowed(rig.PodPeer(prometheus), rig.PodPeer(extension), metrics)
		return err == nil, fmt.Sprint(err), nil
	})
	rules := policyRules(ctx, p, p.Session.Seed)
	refuse := func(what string, err error) {
		if err == nil {
			p.Errorf("policies allow %s", what)
		}
	}
	refuse("another pod to leave for the metrics", rules.Leaves(rig.PodPeer(other), rig.PodPeer(extension), metrics))
	refuse("another pod to scrape", rules.Enters(rig.PodPeer(other), rig.PodPeer(extension), metrics))
	refuse("Prometheus to reach the health port", rules.Enters(rig.PodPeer(prometheus), rig.PodPeer(extension), rig.TCP(ports["health"])))

	outside, err := rig.AddressPeer("192.0.2.1")
	p.Check(err)
	p.Check(rules.Enters(outside, rig.PodPeer(extension), rig.TCP(ports["webhook"])))
	endpoints := &corev1.Endpoints{} //nolint:staticcheck // Gardener makes the policy from this object
	p.Check(p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, endpoints))
	server, err := rig.AddressPeer(endpoints.Subsets[0].Addresses[0].IP)
	p.Check(err)
	p.Check(rules.Leaves(rig.PodPeer(extension), server, rig.TCP(endpoints.Subsets[0].Ports[0].Port)))
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("policies: Prometheus scrapes the extension and no other pod does; API server and webhook are reachable")
}

// installService creates the Service of the extension's chart, and a pod with the labels and ports
// of its Deployment. It returns the pod and its ports by name.
func installService(ctx context.Context, p *rig.Run) (*corev1.Pod, map[string]int32) {
	p.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: extension.Namespace}}
	p.Check(p.Session.Seed.Patch(ctx, namespace, client.RawPatch(client.Merge.Type(), []byte(`{"metadata":{"labels":{"gardener.cloud/role":"extension"}}}`))))
	archive, err := helmchart.Archive(charts.Extension(), v1alpha3.ExtensionType)
	p.Check(err)
	release, err := p.Session.Testbed.Gardenlet.Seed.ChartRenderer().RenderArchive(archive, v1alpha3.ExtensionType, namespace.Name, map[string]any{
		"image": map[string]any{"ref": "registry.test/registry-cache-extension:e2e"}, "gardener": map[string]any{"version": gardener.Version},
	})
	p.Check(err)
	deployment := &appsv1.Deployment{}
	for manifests := kubernetes.NewManifestReader(release.Manifest()); ; {
		object, err := manifests.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		p.Check(err)
		switch object.GetKind() {
		case "Service":
			p.Afterwards(ctx, func(ctx context.Context) error { return p.Session.Seed.Delete(ctx, object) })
			p.Check(p.Session.Seed.Create(ctx, object))
		case "Deployment":
			p.Check(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment))
		}
	}
	template := deployment.Spec.Template
	ports := map[string]int32{}
	for _, port := range template.Spec.Containers[0].Ports {
		ports[port.Name] = port.ContainerPort
	}
	return pod(ctx, p, namespace.Name, template.Labels, template.Spec.Containers[0].Ports), ports
}

// pod creates a pod and deletes it when the scenario ends. The pod never runs.
func pod(ctx context.Context, p *rig.Run, namespace string, labels map[string]string, ports []corev1.ContainerPort) *corev1.Pod {
	p.Helper()
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "e2e-policy-", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "none", Image: "registry.test/none:e2e", Ports: ports}}},
	}
	p.Afterwards(ctx, func(ctx context.Context) error {
		return p.Session.Seed.Delete(ctx, object, client.GracePeriodSeconds(0))
	})
	p.Check(p.Session.Seed.Create(ctx, object))
	return object
}

func proveCachesReach(ctx context.Context, p *rig.Run) {
	replicated := cachetest.Cache(rig.Beta)
	replicated.HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
	configure(ctx, p, nil, cachetest.Cache(rig.Alpha), replicated)
	p.Await(ctx, "kube-system denies what no policy allows", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		outsider := rig.PodPeer(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "any"}})
		return policyRules(ctx, p, p.Session.Shoot).Enters(outsider, outsider, rig.TCP(1)) != nil, "it does not", nil
	})
	rules := policyRules(ctx, p, p.Session.Shoot)
	node, err := rig.AddressPeer("192.0.2.1")
	p.Check(err)
	upstream, err := rig.AddressPeer("203.0.113.1")
	p.Check(err)
	pods := &corev1.PodList{}
	p.Check(p.Session.Shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}))
	if len(pods.Items) != 3 {
		p.Fatalf("there are %d pods of caches, want three", len(pods.Items))
	}
	for i := range pods.Items {
		cache := rig.PodPeer(&pods.Items[i])
		for what, err := range map[string]error{
			"a pull":         rules.Enters(node, cache, rig.TCP(v1alpha3.CachePort)),
			"a probe":        rules.Enters(node, cache, rig.TCP(v1alpha3.CacheDebugPort)),
			"the upstream":   rules.Leaves(cache, upstream, rig.TCP(443)),
			"a name by UDP":  rules.Leaves(cache, node, rig.UDP(53)),
			"a name by TCP":  rules.Leaves(cache, node, rig.TCP(53)),
			"the other pods": reachPeers(rules, cache, pods.Items),
		} {
			if err != nil {
				p.Errorf("%s needs %s: %v", cache, what, err)
			}
		}
		if rules.Enters(node, cache, rig.TCP(v1alpha3.CacheDebugPort+1)) == nil {
			p.Errorf("%s is open on a port that it does not have", cache)
		}
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Evidence("policies: nodes reach %d caches; they reach DNS, upstreams and their replicas", len(pods.Items))
}

// reachPeers returns an error if the pod of a cache cannot reach another replica of this cache.
func reachPeers(rules rig.NetworkRules, cache rig.Peer, pods []corev1.Pod) error {
	for i := range pods {
		if pods[i].Name == cache.Pod.Name || pods[i].Labels[v1alpha3.LabelUpstreamHost] != cache.Pod.Labels[v1alpha3.LabelUpstreamHost] {
			continue
		}
		if err := rules.Allowed(cache, rig.PodPeer(&pods[i]), rig.TCP(v1alpha3.CachePort)); err != nil {
			return err
		}
	}
	return nil
}

// policyRules returns the NetworkPolicies and namespaces of a cluster.
func policyRules(ctx context.Context, p *rig.Run, cluster rig.Access) rig.NetworkRules {
	p.Helper()
	policies, namespaces := &networkingv1.NetworkPolicyList{}, &corev1.NamespaceList{}
	p.Check(cluster.List(ctx, policies))
	p.Check(cluster.List(ctx, namespaces))
	return rig.NetworkRules{Policies: policies.Items, Namespaces: namespaces.Items}
}
