package certificate

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/util/secret/manager"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

const (
	// authorityName is the name of the authority among the Secrets of the shoot's namespace.
	authorityName = "ca-extension-registry-cache"
	// identity tells the Secrets of this manager from those of others in the namespace.
	identity = "extension-registry-cache"

	// validity is how long a server certificate is good for. Gardener's default for certificates that it renews is much
	// less; but a certificate is renewed in a reconciliation, and a shoot may be left alone for long. With an expired one,
	// every pull would silently go to the upstream.
	validity = 2 * 365 * 24 * time.Hour
	// renewAt is the part of the validity, in percent, after which a reconciliation renews a certificate: a new one
	// restarts the cache once a year, and leaves another year for the next reconciliation to come.
	renewAt = 50
)

// Authority signs the certificates of the caches of one shoot. Its key and its certificates are taken over by the next
// seed when the control plane moves, so that nothing in the shoot has to change.
type Authority struct {
	manager secretsmanager.Interface
	bundle  []byte
}

// Load returns the Authority of the shoot, and makes it if there is none. It rotates together with the authorities of
// the Shoot: while that is prepared, the old one signs and Bundle has both; once it is being completed, the new one signs
// and the old one is forgotten. The client must not read from a cache.
func Load(ctx context.Context, log logr.Logger, clock clock.Clock, seed client.Client, cluster *extensionscontroller.Cluster) (*Authority, error) {
	config := &secrets.CertificateSecretConfig{Name: authorityName, CertType: secrets.CACert}
	options := []secretsmanager.GenerateOption{secretsmanager.Persist()}
	m, err := manager.SecretsManagerForCluster(ctx, log, clock, seed, cluster, identity,
		[]manager.SecretConfigWithOptions{{Config: config, Options: options}})
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of the caches: %w", err)
	}
	if _, err := m.Generate(ctx, config, options...); err != nil {
		return nil, fmt.Errorf("ensuring the certificate authority of the caches: %w", err)
	}
	bundle, ok := m.Get(authorityName)
	if !ok {
		return nil, fmt.Errorf("the certificate authority %s has no bundle", authorityName)
	}
	return &Authority{manager: m, bundle: bundle.Data[secrets.DataKeyCertificateBundle]}, nil
}

// Bundle returns the certificates that a server certificate may be verified by, in PEM.
func (a *Authority) Bundle() []byte {
	return a.bundle
}

// Issue returns the certificate of the cache for its cluster IP and the names of its Service. It is the same on each
// call until one of them, or the authority, changes, or its validity is half over.
func (a *Authority) Issue(ctx context.Context, c *v1alpha3.RegistryCache, clusterIP net.IP) (*cache.Certificate, error) {
	name := v1alpha3.Name(c.Upstream)
	secret, err := a.manager.Generate(ctx, &secrets.CertificateSecretConfig{
		Name:                        name + "-tls",
		CommonName:                  name,
		CertType:                    secrets.ServerCert,
		DNSNames:                    dnsNames(v1alpha3.ServiceName(c)),
		IPAddresses:                 []net.IP{clusterIP},
		Validity:                    ptr.To(validity),
		SkipPublishingCACertificate: true,
	},
		// The old authority signs as long as there is one: nodes may not have the new one yet.
		secretsmanager.SignedByCA(authorityName),
		secretsmanager.RenewAfterValidityPercentage(renewAt),
		secretsmanager.Persist(),
	)
	if err != nil {
		return nil, fmt.Errorf("issuing the certificate of the cache of %s: %w", c.Upstream, err)
	}
	return &cache.Certificate{
		Certificate: secret.Data[secrets.DataKeyCertificate],
		PrivateKey:  secret.Data[secrets.DataKeyPrivateKey],
	}, nil
}

// Prune deletes the certificates that were not issued by this Authority since Load, and authorities that are not in use
// any more.
func (a *Authority) Prune(ctx context.Context) error {
	if err := a.manager.Cleanup(ctx); err != nil {
		return fmt.Errorf("deleting certificates that are not in use: %w", err)
	}
	return nil
}

// Remove deletes the Authority of the shoot in the namespace and every certificate. Without any it does nothing.
func Remove(ctx context.Context, log logr.Logger, clock clock.Clock, seed client.Client, namespace string) error {
	cluster := &extensionscontroller.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Shoot: &gardencorev1beta1.Shoot{}}
	m, err := manager.SecretsManagerForCluster(ctx, log, clock, seed, cluster, identity, nil)
	if err != nil {
		return fmt.Errorf("reading the certificates of the caches: %w", err)
	}
	return (&Authority{manager: m}).Prune(ctx)
}

func dnsNames(service string) []string {
	name := service + "." + metav1.NamespaceSystem
	return []string{service, name, name + ".svc", name + ".svc." + gardencorev1beta1.DefaultDomain}
}
