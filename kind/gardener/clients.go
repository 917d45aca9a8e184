package gardener

import (
	"fmt"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewSeedClient returns gardener's client set for a seed: its scheme knows the extension and resource APIs, and nothing
// is read from a cache. It fails if the API server does not answer or its version is not supported by Gardener.
func NewSeedClient(config *rest.Config) (kubernetes.Interface, error) {
	return newClientSet("seed", config, client.Options{Scheme: kubernetes.SeedScheme})
}

// NewShootClient is NewSeedClient for a shoot, with gardener's scheme for shoots.
func NewShootClient(config *rest.Config) (kubernetes.Interface, error) {
	return newClientSet("shoot", config, client.Options{Scheme: kubernetes.ShootScheme})
}

func newClientSet(cluster string, config *rest.Config, options client.Options) (kubernetes.Interface, error) {
	clientSet, err := kubernetes.NewWithConfig(
		kubernetes.WithRESTConfig(config),
		kubernetes.WithClientOptions(options),
		kubernetes.WithDisabledCachedClient(),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to the %s's API server %s: %w", cluster, config.Host, err)
	}
	return clientSet, nil
}
