// Package certificate issues the server certificates of caches with http.tls. Gardener's secrets
// manager stores the CA and the certificates in Secrets of the shoot's namespace in the seed,
// rotates the CA and renews certificates.
//
// The package does not deploy certificates to caches, or the CA bundle to nodes.
package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/util/secret/manager"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

const (
	// caName is the name of the CA among the Secrets of the shoot's namespace. Name and identity are
	// the same as in gardener-extension-registry-cache, so its CA remains in the bundle and signs for
	// keepOld. Our own CA is valid for 10 years, because only a rotation of the Shoot's CAs renews it.
	caName = "ca-extension-registry-cache"
	// keepOld is the longest time that a previous CA signs. By then the nodes trust the next one: they
	// get it minutes after the reconciliation that created it.
	keepOld = 24 * time.Hour
	// identity distinguishes the Secrets of this secrets manager from others in the namespace.
	identity = "extension-registry-cache"

	// serverValidity is the lifetime of a server certificate. It is much longer than Gardener's
	// default for certificates that are renewed automatically: only a reconciliation renews them, and
	// the next one may be far away. With an expired certificate, every pull silently bypasses the
	// cache.
	serverValidity = 2 * 365 * 24 * time.Hour
	// serverRenewAt is the percentage of serverValidity after which a reconciliation renews a
	// certificate. A renewal restarts the cache. With 50, this happens at most once a year, and a year
	// is left for the next reconciliation.
	serverRenewAt = 50
)

// CA signs the certificates of the caches of one shoot. When the control plane moves, the next seed
// takes over the CA's key and certificates, so nothing changes in the shoot.
type CA struct {
	// Bundle contains the PEM certificates that verify a server certificate.
	Bundle  []byte
	manager secretsmanager.Interface
}

// Load returns the CA of the shoot and creates it if needed. The CA rotates together with the CAs
// of the Shoot: during preparation, the old CA signs and Bundle contains both; from completion on,
// or a day later, the new CA signs and the old one is removed. With trustOld, Bundle contains the
// old one as long as it exists. The client must not use the manager's cache.
func Load(ctx context.Context, log logr.Logger, clock clock.Clock, seed client.Client, cluster *extensionscontroller.Cluster, trustOld bool) (*CA, error) {
	config := &secrets.CertificateSecretConfig{Name: caName, CertType: secrets.CACert}
	options := []secretsmanager.GenerateOption{secretsmanager.Persist()}
	if !trustOld {
		options = append(options, secretsmanager.IgnoreOldSecretsAfter(keepOld))
	}
	m, err := manager.SecretsManagerForCluster(ctx, log, clock, seed, cluster, identity,
		[]manager.SecretConfigWithOptions{{Config: config, Options: options}})
	if err != nil {
		return nil, fmt.Errorf("read the certificates of the caches: %w", err)
	}
	if _, err := m.Generate(ctx, config, options...); err != nil {
		return nil, fmt.Errorf("ensure the CA of the caches: %w", err)
	}
	bundle, ok := m.Get(caName)
	if !ok {
		return nil, fmt.Errorf("the CA %s has no bundle", caName)
	}
	return &CA{manager: m, Bundle: bundle.Data[secrets.DataKeyCertificateBundle]}, nil
}

// Issue returns the certificate of the cache for its address and the DNS names of its Service, or
// only for the names if the address is unknown. It issues a new one only if the address, a name or
// the CA has changed, or half of its validity is over.
func (a *CA) Issue(ctx context.Context, c *v1alpha3.RegistryCache, id v1alpha3.Identity) (*cache.Certificate, error) {
	isUnknown := func(address net.IP) bool { return address == nil }
	config := &secrets.CertificateSecretConfig{
		Name:                        id.Name + "-tls",
		CommonName:                  id.Name,
		CertType:                    secrets.ServerCert,
		DNSNames:                    kubernetesutils.DNSNamesForService(id.ServiceName(c), metav1.NamespaceSystem),
		IPAddresses:                 slices.DeleteFunc([]net.IP{net.ParseIP(id.Address)}, isUnknown),
		Validity:                    new(serverValidity),
		SkipPublishingCACertificate: true,
	}
	secret, err := a.manager.Generate(ctx, ellipticConfig{config},
		// While the old CA exists, it signs, because nodes may not trust the new CA yet. The library
		// accepts this option only for its own type.
		func(m secretsmanager.Interface, _ secrets.ConfigInterface, options *secretsmanager.GenerateOptions) error {
			return secretsmanager.SignedByCA(caName)(m, config, options)
		},
		secretsmanager.Validity(serverValidity),
		secretsmanager.RenewAfterValidityPercentage(serverRenewAt),
		secretsmanager.Persist(),
	)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate for the cache of %s: %w", c.Upstream, err)
	}
	return &cache.Certificate{Certificate: secret.Data[secrets.DataKeyCertificate], PrivateKey: secret.Data[secrets.DataKeyPrivateKey]}, nil
}

// ellipticConfig gives the certificate an ECDSA key. Gardener's library supports only RSA keys:
// creating one takes a third of a second, and each handshake of a node's probe is much slower.
type ellipticConfig struct {
	*secrets.CertificateSecretConfig
}

func (c ellipticConfig) Generate() (secrets.DataInterface, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := secrets.Clock.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: c.CommonName}, DNSNames: c.DNSNames, IPAddresses: c.IPAddresses,
		NotBefore: secrets.AdjustToClockSkew(now), NotAfter: now.Add(*c.Validity), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, c.SigningCA.Certificate, key.Public(), c.SigningCA.PrivateKey)
	if err != nil {
		return nil, err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	return &secrets.Certificate{
		CA: c.SigningCA, CertType: c.CertType, SkipPublishingCACertificate: c.SkipPublishingCACertificate,
		CertificatePEM: utils.EncodeCertificate(signed), PrivateKeyPEM: pem,
	}, err
}

// Prune deletes certificates that Issue has not returned since Load, and unused CAs.
func (a *CA) Prune(ctx context.Context) error {
	if err := a.manager.Cleanup(ctx); err != nil {
		return fmt.Errorf("delete unused certificates: %w", err)
	}
	return nil
}

// Remove deletes the CA and all certificates of the shoot in the namespace, if there are any.
func Remove(ctx context.Context, log logr.Logger, clock clock.Clock, seed client.Client, namespace string) error {
	cluster := &extensionscontroller.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Shoot: &gardencorev1beta1.Shoot{}}
	m, err := manager.SecretsManagerForCluster(ctx, log, clock, seed, cluster, identity, nil)
	if err != nil {
		return fmt.Errorf("read the certificates of the caches: %w", err)
	}
	return (&CA{manager: m}).Prune(ctx)
}
