package landscape

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// writers is how many objects are written concurrently.
const writers = 16

// Landscape is a seed with shoots.
type Landscape struct {
	seed   client.Client
	shoots int
	// kubeconfig is for the API server of all shoots.
	kubeconfig []byte
}

// New returns a Landscape on a seed that Prepare has set up. The client must not read from a cache,
// and kubeconfig is for the API server of all shoots.
func New(seed client.Client, shoots int, kubeconfig []byte) *Landscape {
	return &Landscape{seed: seed, shoots: shoots, kubeconfig: kubeconfig}
}

// CreateShoots creates what the reconciliation of an Extension needs: namespace, Cluster,
// kubeconfigs.
func (l *Landscape) CreateShoots(ctx context.Context) error {
	return each(ctx, l.shoots, func(ctx context.Context, i int) error {
		cluster, err := cluster(i)
		if err != nil {
			return err
		}
		kubeconfig, err := l.kubeconfigOf(i)
		if err != nil {
			return err
		}
		objects := []client.Object{shootNamespace(i), cluster}
		for _, secret := range kubeconfigSecrets(i, kubeconfig) {
			objects = append(objects, secret)
		}
		for _, object := range objects {
			if err := l.seed.Create(ctx, object); err != nil {
				return fmt.Errorf("creating %T of shoot %d: %w", object, i, err)
			}
		}
		return nil
	})
}

// CreateExtensions creates the Extensions of all shoots.
func (l *Landscape) CreateExtensions(ctx context.Context) error {
	return each(ctx, l.shoots, func(ctx context.Context, i int) error { return l.seed.Create(ctx, extension(i)) })
}

// CreateOperatingSystemConfigs creates an OperatingSystemConfig for each shoot. It fails if the
// webhook did not mutate one.
func (l *Landscape) CreateOperatingSystemConfigs(ctx context.Context) error {
	return each(ctx, l.shoots, func(ctx context.Context, i int) error {
		config, err := OperatingSystemConfig(i)
		if err != nil {
			return err
		}
		units := len(config.Spec.Units)
		if err := l.seed.Create(ctx, config); err != nil {
			return err
		}
		if len(config.Spec.Units) == units {
			return fmt.Errorf("the webhook added no unit to OperatingSystemConfig %s", client.ObjectKeyFromObject(config))
		}
		return nil
	})
}

// Reconcile requests a reconciliation of the Extensions of the first shoots, as gardenlet does, by
// annotation.
func (l *Landscape) Reconcile(ctx context.Context, shoots int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`,
		v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	return each(ctx, shoots, func(ctx context.Context, i int) error {
		ex := &extensionsv1alpha1.Extension{}
		ex.Namespace, ex.Name = Namespace(i), ExtensionName
		return l.seed.Patch(ctx, ex, client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
}

// Break points the kubeconfigs of the i-th shoot to another address.
func (l *Landscape) Break(ctx context.Context, i int, address string) error {
	config, err := clientcmd.Load(l.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the shoots: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + address
	}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing a kubeconfig for %s: %w", address, err)
	}
	for _, secret := range kubeconfigSecrets(i, kubeconfig) {
		if err := l.seed.Update(ctx, secret); err != nil {
			return fmt.Errorf("pointing shoot %d to %s: %w", i, address, err)
		}
	}
	return nil
}

// kubeconfigOf returns a unique kubeconfig. The comment before its CA bundle makes client-go open
// one connection for each shoot, as it does where every shoot has its own API server.
func (l *Landscape) kubeconfigOf(i int) ([]byte, error) {
	config, err := clientcmd.Load(l.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the shoots: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.CertificateAuthorityData = append([]byte(Namespace(i)+"\n"), cluster.CertificateAuthorityData...)
	}
	return clientcmd.Write(*config)
}

// each calls do concurrently for the first shoots, and returns the first error.
func each(ctx context.Context, shoots int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range shoots {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}
