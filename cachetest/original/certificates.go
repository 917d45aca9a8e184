package original

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/gardener/gardener/extensions/pkg/util/secret/manager"
	"github.com/gardener/gardener/pkg/extensions"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	caName   = "ca-extension-registry-cache"
	identity = "extension-registry-cache"

	caValidity, serverValidity = 730 * 24 * time.Hour, 90 * 24 * time.Hour
)

// issue sets the certificate of each cache with TLS, and returns the Secret with the CA bundle, or
// nil if no cache uses TLS. As the original does, it signs with the old CA while there is one.
func (e Extension) issue(ctx context.Context, cluster *extensions.Cluster, caches []cache) (*corev1.Secret, error) {
	ca := &secrets.CertificateSecretConfig{
		Name: caName, CommonName: caName, CertType: secrets.CACert, Validity: ptr.To(caValidity),
	}
	options := []secretsmanager.GenerateOption{secretsmanager.Persist()}
	m, err := manager.SecretsManagerForCluster(ctx, e.Log, clock.RealClock{}, e.Seed, cluster, identity,
		[]manager.SecretConfigWithOptions{{Config: ca, Options: options}})
	if err != nil {
		return nil, fmt.Errorf("read the original's certificates: %w", err)
	}
	var bundle *corev1.Secret
	for i := range caches {
		c := &caches[i]
		if !c.tls() {
			continue
		}
		if bundle == nil {
			if _, err := m.Generate(ctx, ca, options...); err != nil {
				return nil, fmt.Errorf("generate the original's CA: %w", err)
			}
			bundle, _ = m.Get(caName)
		}
		server := &secrets.CertificateSecretConfig{
			Name: c.name() + "-tls", CommonName: c.name(), CertType: secrets.ServerCert, Validity: ptr.To(serverValidity),
			DNSNames:    kubernetesutils.DNSNamesForService(c.serviceName(), metav1.NamespaceSystem),
			IPAddresses: []net.IP{net.ParseIP(c.address)}, SkipPublishingCACertificate: true,
		}
		if c.secret, err = m.Generate(ctx, server, secretsmanager.SignedByCA(caName, secretsmanager.UseOldCA), secretsmanager.Persist()); err != nil {
			return nil, fmt.Errorf("issue the original's certificate for %s: %w", c.Upstream, err)
		}
	}
	if err := m.Cleanup(ctx); err != nil {
		return nil, fmt.Errorf("delete the original's unused certificates: %w", err)
	}
	return bundle, nil
}
