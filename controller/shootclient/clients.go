package shootclient

import (
	"context"
	"fmt"
	"net/http"
	"os"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/secrets"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const (
	// maxClients limits the cached clients, which take about 50 KiB and an open connection each. It
	// is far more than the number of workers, so a shoot keeps its client for the next
	// reconciliation.
	maxClients = 200
	// maxKnown is more than the number of shoots of a seed. It limits the shoots of which it is known
	// how long they take to answer.
	maxKnown = 5000
)

// lookups counts client lookups by result: "hit", or "miss" if a client had to be created.
var lookups = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "registry_cache_extension_shoot_client_lookups_total",
	Help: "Lookups of clients for shoots, by result: hit, or miss when one had to be created.",
}, []string{"result"})

func init() {
	metrics.Registry.MustRegister(lookups)
}

// Clients caches the clients for the shoots of one seed. It is safe for concurrent use.
type Clients struct {
	seed    client.Reader
	mapper  meta.RESTMapper
	clients *lru.Cache
	answers *lru.Cache // how long each shoot takes to answer, by namespace
}

// entry is a client and the identity of the Secret that it was created from.
type entry struct {
	secret identity
	client client.Client
	http   *http.Client
}

// identity is one version of one Secret. A Secret that was deleted and recreated has another UID.
type identity struct {
	name            string
	uid             types.UID
	resourceVersion string
}

// New returns Clients that read Secrets with seed, a client that should bypass the manager's cache.
func New(seed client.Reader) *Clients {
	return newClients(seed, maxClients)
}

// NewForAll is like New, for a caller that asks every shoot of the seed in turn: it keeps all
// clients, until Forget.
func NewForAll(seed client.Reader) *Clients {
	return newClients(seed, maxKnown)
}

// Forget drops what is known of the shoot.
func (c *Clients) Forget(namespace string) {
	c.clients.Remove(namespace)
	c.answers.Remove(namespace)
}

func newClients(seed client.Reader, size int) *Clients {
	return &Clients{
		seed:    seed,
		mapper:  newMapper(),
		answers: lru.New(maxKnown),
		clients: lru.NewWithEvictionFunc(size, func(_ lru.Key, value any) {
			if dropped, ok := value.(*entry); ok {
				// http.Client.CloseIdleConnections ignores a transport that client-go has wrapped.
				utilnet.CloseIdleConnectionsFor(dropped.http.Transport)
			}
		}),
	}
}

// For returns the client for the shoot whose control plane runs in the namespace of the seed. On
// each call it reads the kubeconfig from the Secret gardener-internal or, if there is none,
// gardener. This takes one or two requests to the seed and none to the shoot. For does not check
// whether the shoot answers. A request of the client fails with NoAnswerError after 8 seconds, or
// sooner if the shoot did not answer before.
func (c *Clients) For(ctx context.Context, namespace string) (client.Client, error) {
	secret, err := c.secret(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of shoot %s: %w", namespace, err)
	}
	id := identity{secret.Name, secret.UID, secret.ResourceVersion}
	value, _ := c.clients.Get(namespace)
	if known, ok := value.(*entry); ok && known.secret == id {
		lookups.WithLabelValues("hit").Inc()
		return known.client, nil
	}
	lookups.WithLabelValues("miss").Inc()
	created, err := c.create(namespace, secret)
	if err != nil {
		return nil, fmt.Errorf("creating a client for shoot %s from Secret %s: %w", namespace, secret.Name, err)
	}
	created.secret = id
	c.clients.Remove(namespace) // running requests continue
	c.clients.Add(namespace, created)
	return created.client, nil
}

// secret returns the Secret with the kubeconfig. Like util.NewClientForShoot of Gardener's
// extension library, it prefers the address inside the seed, unless the controller is outside it.
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

func (c *Clients) create(namespace string, secret *corev1.Secret) (*entry, error) {
	config, err := kubernetes.RESTConfigFromKubeconfig(secret.Data[secrets.DataKeyKubeconfig],
		kubernetes.AuthTokenFile, kubernetes.AuthClientKey, kubernetes.AuthClientCertificate)
	if err != nil {
		return nil, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &transport{next: next, shoot: c.answersOf(namespace)}
	})
	config.QPS = -1 // no client-side limit: the API server of the shoot has priority and fairness
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	shoot, err := client.New(config, client.Options{HTTPClient: connection, Scheme: kubernetes.ShootScheme, Mapper: c.mapper})
	if err != nil {
		return nil, err
	}
	return &entry{client: shoot, http: connection}, nil
}

// newMapper returns a REST mapper that has every kind that the controller uses in a shoot. The
// kinds are the same in every Kubernetes version that Gardener supports. They are listed here
// because discovery would cost each client several requests. For another kind, the mapper returns
// an error (meta.IsNoMatchError).
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for group, kinds := range map[schema.GroupVersion][]string{
		corev1.SchemeGroupVersion:           {"Service", "Pod", "PersistentVolumeClaim"},
		appsv1.SchemeGroupVersion:           {"DaemonSet", "StatefulSet"},
		policyv1.SchemeGroupVersion:         {"PodDisruptionBudget"},
		networkingv1.SchemeGroupVersion:     {"NetworkPolicy"},
		vpaautoscalingv1.SchemeGroupVersion: {"VerticalPodAutoscaler"}, // which a shoot may lack
	} {
		for _, kind := range kinds {
			mapper.Add(group.WithKind(kind), meta.RESTScopeNamespace)
		}
	}
	for _, kind := range []string{"Node", "PersistentVolume"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return mapper
}
