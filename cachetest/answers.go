package cachetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/secrets"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// answerProgram answers on each node of the shoot in place of a cache.
var answerProgram = image.Binary{Name: "testbed-answer", Package: kind.ModulePath + "/cachetest/testbed-answer"}

// cacheCA is the name of the Secret with the CA of the caches.
const cacheCA = "ca-extension-registry-cache"

// cacheAnswers makes a program on each node answer in place of a cache. If the cache speaks HTTPS,
// the program uses a certificate of the caches' CA, or an expired one for the fault ExpiredTLS.
type cacheAnswers struct {
	fault.OnNodes
	testbed   *kind.Testbed
	addresses []string
	program   string // path on the node
}

func prepareAnswers(ctx context.Context, t *kind.Testbed, f spec.Fault) (kind.Injection, error) {
	addresses, err := fault.AddressesOf(ctx, t, f.Target)
	if err != nil {
		return nil, err
	}
	program := "/opt/testbed-answer-" + f.ID // /run is mounted noexec
	argument := fmt.Sprintf("%s %d %s", program, cmp.Or(f.Status, http.StatusOK), strings.Join(addresses, " "))
	return cacheAnswers{fault.OnEach(t.Shoot.Nodes(), f, argument), t, addresses, program}, nil
}

// Inject copies the program and its certificate to the nodes, and begins the fault.
func (a cacheAnswers) Inject(ctx context.Context) error {
	pair, err := a.certificate(ctx)
	if err != nil {
		return err
	}
	built, err := a.testbed.Build(ctx, answerProgram)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(built[0].Executable)
	if err != nil {
		return fmt.Errorf("read %s: %w", answerProgram.Name, err)
	}
	for node := range a.Arguments {
		if err := node.WriteFile(ctx, a.program, 0o755, content); err != nil {
			return err
		}
		if len(pair) > 0 {
			if err := node.WriteFile(ctx, a.program+".pem", 0o600, pair); err != nil {
				return err
			}
		}
	}
	return a.OnNodes.Inject(ctx)
}

// Clear ends the fault and deletes the program, even if Inject never ran.
func (a cacheAnswers) Clear(ctx context.Context) error {
	err := a.OnNodes.Clear(ctx)
	for node := range a.Arguments {
		_, removed := node.Exec(ctx, "rm", "-f", "--", a.program, a.program+".pem")
		err = errors.Join(err, removed)
	}
	return err
}

// certificate returns a certificate for the addresses of the cache and its key, or nothing if the
// cache speaks HTTP.
func (a cacheAnswers) certificate(ctx context.Context) ([]byte, error) {
	https, err := a.speaksHTTPS(ctx)
	if err != nil || !https {
		if err == nil && a.Fault.Kind == spec.ExpiredTLS {
			err = fmt.Errorf("%s has no certificate: it speaks HTTP", a.Fault.Target)
		}
		return nil, err
	}
	ca, err := loadCacheCA(ctx, a.testbed)
	if err != nil {
		return nil, err
	}
	config := &secrets.CertificateSecretConfig{Name: "testbed", CommonName: "testbed", CertType: secrets.ServerCert, SigningCA: ca}
	if a.Fault.Kind == spec.ExpiredTLS {
		config.Validity = ptr.To(-time.Minute)
	}
	for _, address := range a.addresses {
		config.IPAddresses = append(config.IPAddresses, net.ParseIP(address))
	}
	issued, err := config.GenerateCertificate()
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return slices.Concat(issued.CertificatePEM, issued.PrivateKeyPEM), nil
}

// speaksHTTPS reports whether the cache answers 400 to plain HTTP, as a server for HTTPS does.
func (a cacheAnswers) speaksHTTPS(ctx context.Context) (bool, error) {
	var node *cluster.Node
	for node = range a.Arguments {
		break
	}
	out, err := node.Exec(ctx, "curl", "--silent", "--max-time", "5", "--output", "/dev/null", "--write-out", "%{http_code}",
		"http://"+net.JoinHostPort(a.addresses[0], strconv.Itoa(v1alpha3.CachePort))+"/")
	if err != nil {
		return false, fmt.Errorf("ask %s: %w", a.Fault.Target, err)
	}
	return out == strconv.Itoa(http.StatusBadRequest), nil
}

func loadCacheCA(ctx context.Context, t *kind.Testbed) (*secrets.Certificate, error) {
	seed, err := client.New(t.Seed.RESTConfig(), client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return nil, fmt.Errorf("client for the seed: %w", err)
	}
	found := &corev1.SecretList{}
	err = seed.List(ctx, found, client.InNamespace(gardenlet.Namespace(gardenlet.DefaultShoot)),
		client.MatchingLabels{secretsmanager.LabelKeyName: cacheCA})
	if err != nil || len(found.Items) == 0 {
		return nil, fmt.Errorf("find the Secret %s: %d found: %w", cacheCA, len(found.Items), err)
	}
	newest := slices.MaxFunc(found.Items, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return secrets.LoadCertificate(cacheCA, newest.Data[secrets.DataKeyPrivateKeyCA], newest.Data[secrets.DataKeyCertificateCA])
}
