package gardenlet

import (
	"context"
	"encoding/json"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils/gardener/shootstate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restoreSecrets creates the Secrets of the ShootState in the shoot's namespace, among them the CAs
// of extensions. It does nothing if the shoot is not being restored. gardenlet does this in
// Botanist.InitializeSecretsManagement, which also creates the CAs of a control plane. The testbed
// has no such CAs.
func (o *shootOperation) restoreSecrets(ctx context.Context) error {
	if !o.Shoot.IsRestorePhase() {
		return nil
	}
	for _, entry := range o.Shoot.GetShootState().Spec.Gardener {
		if entry.Type != v1beta1constants.DataTypeSecret {
			continue
		}
		var saved shootstate.SecretState
		if err := json.Unmarshal(entry.Data.Raw, &saved); err != nil {
			return fmt.Errorf("decoding secret %s of the ShootState: %w", entry.Name, err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Shoot.ControlPlaneNamespace, Name: entry.Name, Labels: entry.Labels},
			Type:       saved.Type, Data: saved.Data, Immutable: saved.Immutable,
		}
		if err := o.SeedClientSet.Client().Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("restoring secret %s of the ShootState: %w", entry.Name, err)
		}
	}
	return nil
}
