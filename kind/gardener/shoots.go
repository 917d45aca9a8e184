package gardener

import (
	"context"
	_ "embed"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed shoots.yaml
var shootDefinition string

// InstallShootDefinition makes a cluster's API server serve Shoots in place of gardener-apiserver;
// shoots.yaml lists the differences. It returns when they are served.
func InstallShootDefinition(ctx context.Context, cluster client.Client) error {
	definition, err := newShootDefinition(cluster)
	if err != nil {
		return err
	}
	if err := definition.Deploy(ctx); err != nil {
		return fmt.Errorf("install the CRD of Shoots: %w", err)
	}
	return nil
}

// RemoveShootDefinition deletes the CRD with all Shoots, regardless of their finalizers, and
// returns when it is gone. A webhook that rejects changes of Shoots must be removed first.
func RemoveShootDefinition(ctx context.Context, cluster client.Client) error {
	definition, err := newShootDefinition(cluster)
	if err != nil {
		return err
	}
	if err := removeFinalizers(ctx, cluster); err != nil {
		return err
	}
	if err := definition.Destroy(ctx); err != nil {
		return fmt.Errorf("remove the CRD of Shoots: %w", err)
	}
	return nil
}

// newShootDefinition returns a component that installs and deletes the CRD and waits for either.
func newShootDefinition(cluster client.Client) (component.DeployWaiter, error) {
	definition, err := crddeployer.New(cluster, []string{shootDefinition}, false)
	if err != nil {
		return nil, fmt.Errorf("read the CRD of Shoots: %w", err)
	}
	return component.OpWait(definition), nil
}

// removeFinalizers removes the finalizers of all Shoots. It does nothing if the API is not served.
func removeFinalizers(ctx context.Context, cluster client.Client) error {
	shoots := &metav1.PartialObjectMetadataList{}
	shoots.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	err := cluster.List(ctx, shoots)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list Shoots: %w", err)
	}
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		before := client.MergeFrom(shoot.DeepCopy())
		shoot.Finalizers = nil
		if err := cluster.Patch(ctx, shoot, before); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the finalizers of Shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
		}
	}
	return nil
}
