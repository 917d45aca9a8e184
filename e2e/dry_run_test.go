//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	podsecurity "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dryRun proves that API servers accept all that the product renders, without a warning: objects of caches and of the
// cleaner in the shoot; monitoring, charts and examples in the seed.
func dryRun() scenario {
	var shoot, seed *judge
	return newScenario("dry-run",
		step{"what is wrong is refused, and what is doubtful is warned of", func(ctx context.Context, p *scenarioRun) {
			shoot, seed = newJudge(ctx, p, p.suite.shoot), newJudge(ctx, p, p.suite.seed)
			for _, judge := range []*judge{shoot, seed} {
				for _, planted := range plantedObjects(judge.restricted) {
					if err := judge.verdict(ctx, planted.object); err == nil || !strings.Contains(err.Error(), planted.from) {
						p.Errorf("%s: want an objection that names %s: %v", judge.config.Host, planted.from, err)
					}
				}
			}
		}},
		step{"the objects of caches and of the cleaner pass in the shoot", func(ctx context.Context, p *scenarioRun) {
			objects := shootObjects(p)
			// The shoot has no vertical pod autoscaler; the seed has the definition that a Shoot with one has.
			autoscalers, others := byGroup(objects, "autoscaling.k8s.io")
			shoot.accepts(ctx, p, others)
			seed.accepts(ctx, p, autoscalers)
			p.Evidence("%d objects for shoots", len(objects))
		}},
		step{"what watches the caches passes in the seed", func(ctx context.Context, p *scenarioRun) {
			objects := monitoringObjects(p)
			seed.accepts(ctx, p, objects)
			p.Evidence("%d of monitoring", len(objects))
		}},
		step{"what the charts render passes in the seed", func(ctx context.Context, p *scenarioRun) {
			objects := chartObjects(p)
			seed.createNamespaces(ctx, p, objects)
			seed.accepts(ctx, p, objects)
			p.Evidence("%d of charts", len(objects))
		}},
		step{"the examples pass that the seed has a definition for", func(ctx context.Context, p *scenarioRun) {
			// Only a garden serves these groups, and there is none: package examples and the admission check them.
			garden, others := byGroup(exampleObjects(p), "core.gardener.cloud", "operator.gardener.cloud")
			seed.accepts(ctx, p, others)
			p.Evidence("%d of examples, without %d that only a garden knows", len(others), len(garden))
		}},
	)
}

// judge says what the API server of a cluster has against objects. Nothing is stored.
type judge struct {
	access
	strict client.Client
	// restricted is a namespace in which the API server warns of pods that the pod security standard "restricted" forbids.
	restricted string
	warnings   []string
}

func newJudge(ctx context.Context, p *scenarioRun, cluster access) *judge {
	p.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-restricted-", Labels: map[string]string{podsecurity.WarnLevelLabel: string(podsecurity.LevelRestricted)},
	}}
	p.Check(cluster.Create(ctx, namespace))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(cluster.Delete(ctx, namespace)) })
	result := &judge{access: cluster, restricted: namespace.Name}
	config := rest.CopyConfig(cluster.config)
	config.WarningHandler, config.QPS = result, -1
	connected, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	p.Check(err)
	result.strict = client.WithFieldValidation(client.NewDryRunClient(connected), metav1.FieldValidationStrict)
	return result
}

// HandleWarningHeader implements rest.WarningHandler.
func (j *judge) HandleWarningHeader(_ int, _, text string) { j.warnings = append(j.warnings, text) }

// verdict returns what the API server has against the object, be it a warning only; nil means that there is nothing.
func (j *judge) verdict(ctx context.Context, object *unstructured.Unstructured) error {
	j.warnings = nil
	err := j.strict.Create(ctx, object.DeepCopy())
	switch {
	// One of that name is there. That is found out when it would be stored: after decoding, admission and validation (Create
	// of Store in k8s.io/apiserver/pkg/registry/generic/registry).
	case err != nil && !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	case len(j.warnings) > 0:
		return fmt.Errorf("%s %s: the API server warns: %s", object.GetKind(), object.GetName(), strings.Join(j.warnings, "; "))
	}
	return nil
}

// createNamespaces creates the namespaces among the objects until the scenario ends: without them the API server refuses what
// lies in them.
func (j *judge) createNamespaces(ctx context.Context, p *scenarioRun, objects []rendered) {
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

// accepts fails the scenario for each object that the API server has something against. Workloads have to comply with
// "restricted", too; the cleaner's DaemonSet cannot, as it works on the node.
func (j *judge) accepts(ctx context.Context, p *scenarioRun, objects []rendered) {
	p.Helper()
	if len(objects) == 0 {
		p.Fatalf("there is no object: this would prove nothing")
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
