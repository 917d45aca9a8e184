package gardener

import (
	"context"
	"slices"

	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheusoperator"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// monitoringCRDs deploys those CRDs of the Prometheus operator that an extension uses. The others
// cost the API server CPU time and memory, and gardener-resource-manager works without them.
type monitoringCRDs struct {
	component.DeployWaiter
	seed client.Client
}

var monitoringNames = []string{"prometheusrules.monitoring.coreos.com", "scrapeconfigs.monitoring.coreos.com"}

// newMonitoringCRDs returns Gardener's deployer, with a client that skips the unused CRDs: by
// itself, it deploys all CRDs of the operator, and does not export their manifests.
func newMonitoringCRDs(seed client.Client) (component.DeployWaiter, error) {
	all, err := prometheusoperator.NewCRDs(onlyObjects{seed, monitoringNames})
	return monitoringCRDs{all, seed}, err
}

// Wait returns when the API server serves the CRDs that Deploy has created.
func (c monitoringCRDs) Wait(ctx context.Context) error {
	return kubernetesutils.WaitUntilCRDManifestsReady(ctx, c.seed, monitoringNames...)
}

// onlyObjects is a client that finds and creates only objects with one of the names.
type onlyObjects struct {
	client.Client
	names []string
}

// Get returns a NotFound error for other names.
func (c onlyObjects) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if !slices.Contains(c.names, key.Name) {
		return apierrors.NewNotFound(apiextensionsv1.Resource("customresourcedefinitions"), key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}

// Create does nothing for other names.
func (c onlyObjects) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if !slices.Contains(c.names, object.GetName()) {
		return nil
	}
	return c.Client.Create(ctx, object, options...)
}
