package original

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

const (
	// BundlePath is the file with the CA of all caches on a node.
	BundlePath = "/etc/containerd/certs.d/ca-bundle.pem"
	// NodeAgentMark is the first line of a hosts.toml that gardener-node-agent has written.
	NodeAgentMark = "# managed by gardener-node-agent"

	policyName = "registry-cache-testbed-original"
	// effectiveTimeout bounds how long the API server takes to use a changed policy.
	effectiveTimeout = 30 * time.Second
)

// registries returns what the original adds to criConfig.containerd.registries.
func registries(caches []cache) []extensionsv1alpha1.RegistryConfig {
	var all []extensionsv1alpha1.RegistryConfig
	for _, c := range caches {
		host := extensionsv1alpha1.RegistryHost{
			URL:          c.endpoint(),
			Capabilities: []extensionsv1alpha1.RegistryCapability{extensionsv1alpha1.PullCapability, extensionsv1alpha1.ResolveCapability},
		}
		if c.tls() {
			host.CACerts = []string{BundlePath}
		}
		all = append(all, extensionsv1alpha1.RegistryConfig{
			Upstream: c.Upstream, Server: c.RemoteURL, Hosts: []extensionsv1alpha1.RegistryHost{host}, ReadinessProbe: ptr.To(true),
		})
	}
	return all
}

// mutate makes the seed's API server add the registries, and the CA if there is one, to the
// OperatingSystemConfigs of the namespace, and waits until it does. The original uses a webhook for
// this, which needs a server; a policy needs none.
func (e Extension) mutate(ctx context.Context, namespace string, caches []cache, bundle []byte) error {
	want := registries(caches)
	policy, binding := admissionPolicy(namespace, want, bundle)
	for _, object := range []client.Object{policy, binding} {
		if err := e.replace(ctx, object); err != nil {
			return err
		}
	}
	return e.awaitRegistries(ctx, namespace, want)
}

// RemoveWebhook reverts mutate in the seed. It does not wait until this takes effect.
func RemoveWebhook(ctx context.Context, seed client.Client) error {
	policy, binding := admissionPolicy("", nil, nil)
	for _, object := range []client.Object{binding, policy} {
		if err := seed.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the original's webhook: %w", err)
		}
	}
	return nil
}

// awaitRegistries waits until the API server adds exactly these registries to a new
// OperatingSystemConfig. The API server caches admission policies, so a change takes effect later.
func (e Extension) awaitRegistries(ctx context.Context, namespace string, want []extensionsv1alpha1.RegistryConfig) error {
	return gardener.Poll(ctx, effectiveTimeout, "the API server does not act as the original's webhook", func(ctx context.Context) error {
		probe := &extensionsv1alpha1.OperatingSystemConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "e2e-original-probe"},
			Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "none"}, Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
				CRIConfig: &extensionsv1alpha1.CRIConfig{
					Name: extensionsv1alpha1.CRINameContainerD, Containerd: &extensionsv1alpha1.ContainerdConfig{SandboxImage: "none"},
				},
			},
		}
		if err := e.Seed.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if got := probe.Spec.CRIConfig.Containerd.Registries; !equality.Semantic.DeepEqual(got, want) {
			return fmt.Errorf("it adds %d registries, want %d", len(got), len(want))
		}
		return nil
	})
}

func admissionPolicy(
	namespace string, registries []extensionsv1alpha1.RegistryConfig, bundle []byte,
) (*admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding) {
	meta := metav1.ObjectMeta{Name: policyName}
	selector := metav1.SetAsLabelSelector(labels.Set{"kubernetes.io/metadata.name": namespace})
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      ptr.To(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: selector, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{extensionsv1alpha1.SchemeGroupVersion.Group}, APIVersions: []string{"v1alpha1"},
						Resources: []string{"operatingsystemconfigs"}, Scope: ptr.To(admissionregistrationv1.NamespacedScope),
					},
				}}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "configures-containerd",
				Expression: `object.spec.purpose == "reconcile" && !has(object.metadata.deletionTimestamp) && ` +
					`has(object.spec.criConfig) && has(object.spec.criConfig.containerd)`,
			}},
			Mutations: []admissionregistrationv1.Mutation{
				jsonPatch(`[JSONPatch{op: "add", path: "/spec/criConfig/containerd/registries", value: ` + literal(registryValues(registries)) + `}]`),
			},
		},
	}
	if len(bundle) > 0 {
		file := literal(map[string]any{
			"path": BundlePath, "permissions": 0o644,
			"content": map[string]any{"inline": map[string]any{"encoding": "b64", "data": base64.StdEncoding.EncodeToString(bundle)}},
		})
		policy.Spec.Mutations = append(policy.Spec.Mutations, jsonPatch(fmt.Sprintf(
			`!has(object.spec.files) ? [JSONPatch{op: "add", path: "/spec/files", value: [%[1]s]}] : `+
				`object.spec.files.exists(file, file.path == %[2]q) ? [] : [JSONPatch{op: "add", path: "/spec/files/-", value: %[1]s}]`, file, BundlePath)))
	}
	return policy, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policyName},
	}
}

func jsonPatch(expression string) admissionregistrationv1.Mutation {
	return admissionregistrationv1.Mutation{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
	}
}

func registryValues(registries []extensionsv1alpha1.RegistryConfig) []any {
	values := []any{}
	for _, registry := range registries {
		hosts := []any{}
		for _, host := range registry.Hosts {
			value := map[string]any{"url": host.URL, "capabilities": anySlice(host.Capabilities)}
			if len(host.CACerts) > 0 {
				value["caCerts"] = anySlice(host.CACerts)
			}
			hosts = append(hosts, value)
		}
		values = append(values, map[string]any{
			"upstream": registry.Upstream, "server": *registry.Server, "hosts": hosts, "readinessProbe": *registry.ReadinessProbe,
		})
	}
	return values
}

func anySlice[S ~string](values []S) []any {
	all := []any{}
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}

// literal returns the value as a CEL expression. In Kubernetes' CEL all values of a map or list
// must have the same type, so each is wrapped in dyn.
func literal(value any) string {
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, fmt.Sprintf("%q: dyn(%s)", key, literal(value[key])))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, element := range value {
			parts = append(parts, "dyn("+literal(element)+")")
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return strconv.Quote(value)
	default:
		return fmt.Sprint(value)
	}
}
