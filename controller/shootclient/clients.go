package shootclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/secrets"
)

const (
	// maxClients bounds the clients that are kept, some 50 KiB and an open connection each. It is many more than workers:
	// what is reconciled, or retried, again soon finds its client.
	maxClients = 200
	// requestTimeout bounds one request to the API server of a shoot.
	requestTimeout = 10 * time.Second
)

// Clients are the clients for the shoots of one seed. They may be used concurrently.
type Clients struct {
	seed    client.Reader
	mapper  meta.RESTMapper
	clients *lru.Cache
	// timeout bounds each request to a shoot.
	timeout time.Duration
}

// entry is a client, and the state of the Secret that it was made from.
type entry struct {
	secret identity
	client client.Client
	http   *http.Client
}

// identity names one state of one Secret. A Secret that was deleted and made again has another UID.
type identity struct {
	name            string
	uid             types.UID
	resourceVersion string
}

// New returns Clients that read the Secrets with seed, which should not read from a cache.
func New(seed client.Reader) *Clients {
	return newClients(seed, maxClients)
}

func newClients(seed client.Reader, size int) *Clients {
	return &Clients{
		seed:    seed,
		mapper:  newMapper(),
		timeout: requestTimeout,
		clients: lru.NewWithEvictionFunc(size, func(_ lru.Key, value any) {
			if dropped, ok := value.(*entry); ok {
				// Not http.Client's method of that name, which stops at the first of client-go's wrappers.
				utilnet.CloseIdleConnectionsFor(dropped.http.Transport)
			}
		}),
	}
}

// For returns the client for the shoot whose control plane runs in the namespace of the seed. The access is that of the
// Secret gardener-internal or, without it, gardener, which is read on each call: one request to the seed, or two, and
// none to the shoot. A request by the client ends after 10 seconds at the latest. Whether the shoot answers shows at its
// first use.
func (c *Clients) For(ctx context.Context, namespace string) (client.Client, error) {
	secret, err := c.secret(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("reading the access to shoot %s: %w", namespace, err)
	}
	id := identity{secret.Name, secret.UID, secret.ResourceVersion}
	value, _ := c.clients.Get(namespace)
	if known, ok := value.(*entry); ok && known.secret == id {
		lookups.WithLabelValues("hit").Inc()
		return known.client, nil
	}
	lookups.WithLabelValues("miss").Inc()
	made, err := c.make(secret)
	if err != nil {
		return nil, fmt.Errorf("creating a client for shoot %s from secret %s: %w", namespace, secret.Name, err)
	}
	made.secret = id
	c.Forget(namespace)
	c.clients.Add(namespace, made)
	return made.client, nil
}

// NoAnswer says whether a request failed because nothing came back in time: to ask once more right away would take as long
// again. An API server that refuses connections does not count.
func NoAnswer(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || apierrors.IsTimeout(err)
}

// Forget drops the client for the shoot, if there is one. Requests that it is at are not disturbed.
func (c *Clients) Forget(namespace string) {
	c.clients.Remove(namespace)
}

// secret prefers the address inside the seed, as util.NewClientForShoot of Gardener's extension library does, unless the
// controller runs outside of it.
func (c *Clients) secret(ctx context.Context, namespace string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if os.Getenv("GARDENER_SHOOT_CLIENT") != "external" {
		err := c.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1beta1constants.SecretNameGardenerInternal}, secret)
		if !apierrors.IsNotFound(err) {
			return secret, err
		}
	}
	err := c.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1beta1constants.SecretNameGardener}, secret)
	return secret, err
}

func (c *Clients) make(secret *corev1.Secret) (*entry, error) {
	config, err := kubernetes.RESTConfigFromKubeconfig(secret.Data[secrets.DataKeyKubeconfig],
		kubernetes.AuthTokenFile, kubernetes.AuthClientKey, kubernetes.AuthClientCertificate)
	if err != nil {
		return nil, err
	}
	config.Timeout = c.timeout
	config.QPS = -1 // no limit here: the API server of the shoot has priority and fairness
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	made, err := client.New(config, client.Options{HTTPClient: connection, Scheme: kubernetes.ShootScheme, Mapper: c.mapper})
	if err != nil {
		return nil, err
	}
	return &entry{client: made, http: connection}, nil
}
