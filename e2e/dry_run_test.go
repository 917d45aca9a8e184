//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/certificate"
)

// dryRun proves that API servers accept, without a warning, all objects of the extension and its
// charts. The shoot's server checks the objects of the caches and the cleaner, except autoscalers.
// The seed's server checks all others.
func dryRun() rig.Scenario {
	var shoot, seed *judge
	return rig.New("dry-run",
		rig.Prove("planted mistakes are refused or cause a warning", func(ctx context.Context, p *rig.Run) {
			shoot, seed = newJudge(ctx, p, p.Session.Shoot), newJudge(ctx, p, p.Session.Seed)
			for _, judge := range []*judge{shoot, seed} {
				for _, planted := range plantedObjects(judge.restricted) {
					if err := judge.verdict(ctx, planted.object); err == nil || !strings.Contains(err.Error(), planted.from) {
						p.Errorf("%s: want an error or a warning that names %s: %v", judge.Config.Host, planted.from, err)
					}
				}
			}
		}),

		rig.Prove("the shoot accepts the objects of caches and of the cleaner", func(ctx context.Context, p *rig.Run) {
			objects := shootObjects(p)

			autoscalers, others := byGroup(objects, "autoscaling.k8s.io")
			shoot.accepts(ctx, p, others)
			seed.accepts(ctx, p, autoscalers)
			p.Evidence("%d objects for shoots", len(objects))
		}),

		rig.Prove("the seed accepts the monitoring of the caches", func(ctx context.Context, p *rig.Run) {
			objects := monitoringObjects(p)
			seed.accepts(ctx, p, objects)
			p.Evidence("%d objects for monitoring", len(objects))
		}),

		rig.Prove("the seed accepts what the charts render", func(ctx context.Context, p *rig.Run) {
			objects := chartObjects(p)
			seed.createNamespaces(ctx, p, objects)
			seed.accepts(ctx, p, objects)
			p.Evidence("%d objects of charts", len(objects))
		}),

		rig.Prove("the seed accepts the examples whose kinds it serves", func(ctx context.Context, p *rig.Run) {
			garden, others := byGroup(exampleObjects(p), "core.gardener.cloud", "operator.gardener.cloud")
			seed.accepts(ctx, p, others)
			p.Evidence("%d objects of examples, without %d of kinds that only a garden has", len(others), len(garden))
		}),
	)
}

// judge asks the API server of a cluster, with a dry run, whether it accepts objects.
type judge struct {
	rig.Access
	strict client.Client
	// restricted is a namespace in which the API server warns about pods that violate the pod
	// security standard "restricted".
	restricted string
	warnings   []string
}

func newJudge(ctx context.Context, p *rig.Run, cluster rig.Access) *judge {
	p.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-restricted-", Labels: map[string]string{podsecurity.WarnLevelLabel: string(podsecurity.LevelRestricted)},
	}}
	p.Check(cluster.Create(ctx, namespace))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(cluster.Delete(ctx, namespace)) })
	result := &judge{Access: cluster, restricted: namespace.Name}
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandler, config.QPS = result, -1
	connected, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	p.Check(err)
	result.strict = client.WithFieldValidation(client.NewDryRunClient(connected), metav1.FieldValidationStrict)
	return result
}

// HandleWarningHeader implements rest.WarningHandler.
func (j *judge) HandleWarningHeader(_ int, _, text string) { j.warnings = append(j.warnings, text) }

// verdict returns the API server's error or warning about the object, or nil.
func (j *judge) verdict(ctx context.Context, object *unstructured.Unstructured) error {
	j.warnings = nil
	err := j.strict.Create(ctx, object.DeepCopy())
	switch {
	// The API server checks existence last (Store.Create in
	// k8s.io/apiserver/pkg/registry/generic/registry), so AlreadyExists means a valid object.
	case err != nil && !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	case len(j.warnings) > 0:
		return fmt.Errorf("%s %s: the API server warns: %s", object.GetKind(), object.GetName(), strings.Join(j.warnings, "; "))
	}
	return nil
}

// createNamespaces creates those objects that are namespaces, because the API server refuses
// objects in missing namespaces. It deletes the namespaces when the scenario ends.
func (j *judge) createNamespaces(ctx context.Context, p *rig.Run, objects []rendered) {
	p.Helper()
	for _, rendered := range objects {
		if rendered.object.GetKind() != "Namespace" {
			continue
		}
		namespace := rendered.object.DeepCopy()
		p.Check(client.IgnoreAlreadyExists(j.Create(ctx, namespace)))
		p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(j.Delete(ctx, namespace)) })
	}
}

// accepts proves that the API server accepts each object without a warning. StatefulSets and
// Deployments must also comply with the standard "restricted". The cleaner's DaemonSet cannot
// comply, because it changes files of the node.
func (j *judge) accepts(ctx context.Context, p *rig.Run, objects []rendered) {
	p.Helper()
	if len(objects) == 0 {
		p.Fatalf("no object found, so this proves nothing")
	}
	for _, rendered := range objects {
		err := j.verdict(ctx, rendered.object)
		if kind := rendered.object.GetKind(); err == nil && (kind == "StatefulSet" || kind == "Deployment") {
			elsewhere := rendered.object.DeepCopy()
			elsewhere.SetNamespace(j.restricted)
			err = j.verdict(ctx, elsewhere)
		}
		if err != nil {
			p.Errorf("%s: %v", rendered.from, err)
		}
	}
}

// dryRunCache is a cache with the Secrets that it refers to.
type dryRunCache struct {
	cache   v1alpha3.RegistryCache
	secrets cache.Secrets
}

// dryRunCaches returns the caches of dryRunConfig with the Secrets that they refer to.
func dryRunCaches(p *rig.Run) []dryRunCache {
	p.Helper()
	ca, err := certificate.New("e2e")
	p.Check(err)
	pair, err := ca.Server("e2e")
	p.Check(err)
	all := dryRunConfig(p).Caches
	cases := make([]dryRunCache, 0, len(all))
	for _, c := range all {
		var secrets cache.Secrets
		if c.SecretReferenceName != nil {
			secrets.Credentials = &cache.Credentials{Username: []byte("@robot"), Password: []byte("\"$#&:\"\r\n\xff\x00")}
		}
		if c.CABundleSecretReferenceName != nil {
			secrets.CABundle = ca.PEM()
		}
		if c.HTTP.TLS {
			secrets.Certificate = &cache.Certificate{Certificate: pair.Certificate, PrivateKey: pair.Key}
		}
		cases = append(cases, dryRunCache{c, secrets})
	}
	return cases
}

// dryRunConfig returns a valid config with defaults. For each field there is a cache that sets it,
// and the last cache sets all fields.
func dryRunConfig(p *rig.Run) *v1alpha3.RegistryConfig {
	p.Helper()
	volume := &v1alpha3.Volume{Size: ptr.To(resource.MustParse("1500Mi")), StorageClassName: ptr.To("fast")}
	collection := &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: 90 * time.Minute}}
	proxy := &v1alpha3.Proxy{
		HTTPProxy: ptr.To("http://proxy.example:3128"), HTTPSProxy: ptr.To("https://[2001:db8::2]:3129"),
		NoProxy: ptr.To("registry.corp.example,10.250.0.0/16,.corp.example:5000"),
	}
	twice := &v1alpha3.HighAvailability{Enabled: true}
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "docker.io"},
		{Upstream: strings.Repeat("a123456789.", 22) + "example.com"},
		{Upstream: strings.Repeat("b", 63) + ".example:65535", RemoteURL: ptr.To("http://10.1.2.3:8080")},
		{Upstream: "10.1.2.3"},
		{Upstream: "[2001:db8::1]"},
		{Upstream: "volume.example", Volume: volume, GarbageCollection: collection},
		{Upstream: "for-ever.example", GarbageCollection: &v1alpha3.GarbageCollection{}},
		{Upstream: "credentials.example", SecretReferenceName: ptr.To("credentials")},
		{Upstream: "ca.example", CABundleSecretReferenceName: ptr.To("ca")},
		{Upstream: "proxy.example", Proxy: proxy},
		{Upstream: "tls.example", HTTP: &v1alpha3.HTTP{TLS: true}},
		{Upstream: "twice.example", HighAvailability: twice},
		{Upstream: "suffix.example", ServiceNameSuffix: ptr.To(strings.Repeat("s", v1alpha3.MaxServiceNameSuffixLength))},
		{
			Upstream: "[2001:db8::1]:5000", RemoteURL: ptr.To("https://[2001:db8::1]:5000"), Volume: volume, GarbageCollection: collection,
			SecretReferenceName: ptr.To("credentials"), CABundleSecretReferenceName: ptr.To("ca"), Proxy: proxy,
			HTTP: &v1alpha3.HTTP{TLS: true}, HighAvailability: twice, ServiceNameSuffix: ptr.To("all"),
		},
	}}
	v1alpha3.SetDefaults(config)
	if errs := v1alpha3.Validate(config); len(errs) > 0 {
		p.Fatalf("the config is not valid: %v", errs.ToAggregate())
	}
	return config
}
