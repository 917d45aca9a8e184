package gardener

import (
	"context"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils/retry"
	"github.com/gardener/gardener/pkg/utils/secrets"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ResourceManager is one gardener-resource-manager: it applies the ManagedResources of one class to one target cluster.
type ResourceManager struct {
	// Namespace of the seed in which it runs.
	Namespace string
	// Image is the reference of its image, which the seed's node must have already.
	Image string
	// Class of the ManagedResources that it handles. Empty means the ones without a class, which belong to the shoot; then
	// only those in Namespace are handled.
	Class string
	// TargetKubeconfig leads to the cluster to which the resources are applied; its server must be reachable from a pod of
	// the seed. Empty means the seed itself.
	TargetKubeconfig []byte
	// Stopped says that it is installed but does not run, as in the control plane of a hibernated shoot.
	Stopped bool
}

// SeedResourceManager returns the resource manager for ManagedResources of class seed, which gardenlet uses for whatever
// it installs into the seed itself, such as extensions and a shoot's referenced resources.
func SeedResourceManager(image string) ResourceManager {
	return ResourceManager{Namespace: GardenNamespace, Image: image, Class: v1beta1constants.SeedResourceManagerClass}
}

// ShootResourceManager returns the resource manager of the shoot whose control plane namespace is given.
func ShootResourceManager(namespace, image string, shootKubeconfig []byte) ResourceManager {
	return ResourceManager{Namespace: namespace, Image: image, TargetKubeconfig: shootKubeconfig}
}

// Deploy creates or updates everything the resource manager needs. The namespace must exist. Its serving certificate is
// generated once and then kept.
func (r ResourceManager) Deploy(ctx context.Context, seed client.Client) error {
	if err := r.ensureCertificate(ctx, seed); err != nil {
		return err
	}
	objects, err := r.objects()
	if err != nil {
		return err
	}
	if err := apply(ctx, seed, objects...); err != nil {
		return fmt.Errorf("deploy %s in namespace %s: %w", resourceManagerName, r.Namespace, err)
	}
	return nil
}

// Wait returns when the resource manager has rolled out and is available, or an error after two minutes.
func (r ResourceManager) Wait(ctx context.Context, seed client.Reader) error {
	return waitForDeployment(ctx, seed, client.ObjectKey{Namespace: r.Namespace, Name: resourceManagerName})
}

// WaitStopped returns when none of its pods is left, or an error after two minutes.
func (r ResourceManager) WaitStopped(ctx context.Context, seed client.Reader) error {
	err := retry.UntilTimeout(ctx, pollInterval, rolloutTimeout, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := seed.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels{"app": resourceManagerName}); err != nil {
			return retry.MinorError(err)
		}
		if len(pods.Items) > 0 {
			return retry.MinorError(fmt.Errorf("pod %s is left", pods.Items[0].Name))
		}
		return retry.Ok()
	})
	if err != nil {
		return fmt.Errorf("%s in namespace %s has not stopped after %s: %w", resourceManagerName, r.Namespace, rolloutTimeout, err)
	}
	return nil
}

// Destroy deletes what Deploy created. Objects that are gone already are no error.
func (r ResourceManager) Destroy(ctx context.Context, seed client.Client) error {
	objects, err := r.objects()
	if err != nil {
		return err
	}
	objects = append(objects, r.certificate())
	for _, object := range objects {
		if err := seed.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("destroy %s: delete %s: %w", resourceManagerName, client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// ensureCertificate creates the certificate of the webhook server. No webhook is registered, but
// gardener-resource-manager always starts the server and exits without a certificate. It is signed by itself, because
// nobody ever connects.
func (r ResourceManager) ensureCertificate(ctx context.Context, seed client.Client) error {
	secret := r.certificate()
	if err := seed.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}); !apierrors.IsNotFound(err) {
		return err // nil: it is there
	}
	server := &secrets.CertificateSecretConfig{
		Name: resourceManagerName, CommonName: resourceManagerName, CertType: secrets.ServerCert,
		DNSNames: []string{resourceManagerName, resourceManagerName + "." + r.Namespace + ".svc"},
	}
	certificate, err := server.GenerateCertificate()
	if err != nil {
		return fmt.Errorf("generate a serving certificate for %s: %w", resourceManagerName, err)
	}
	secret.Data = certificate.SecretData()
	if err := seed.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the serving certificate %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

func (r ResourceManager) certificate() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: certificateSecretName}}
}
