// Package shootclient caches the clients for the API servers of the shoots, because each new client
// costs a connection and a TLS handshake. The number of clients is limited. A client is dropped
// when the Secret with its kubeconfig changes.
//
// A client supports only the kinds that the controller uses in a shoot.
package shootclient

import (
	"context"
	"fmt"
	"net/http"
	"os"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/secrets"
	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The limits of New for the number of clients, which take about 50 KiB and an open connection each.
const (
	// ForSome is far more than the number of workers, so a shoot keeps its client for the next
	// reconciliation.
	ForSome = 200
	// ForAll is more than the number of shoots of a seed, for a caller that asks each in turn. It also
	// limits the shoots whose answer times are remembered.
	ForAll = 5000
)

// lookups counts client lookups by result: "hit", or "miss" if a client had to be created.
var lookups = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "registry_cache_extension_shoot_client_lookups_total",
	Help: "Lookups of clients for shoots, by result: hit, or miss when one had to be created.",
}, []string{"result"})

// Clients caches the clients for the shoots of one seed. It is safe for concurrent use.
type Clients struct {
	seed    client.Reader
	mapper  meta.RESTMapper
	clients *expirable.LRU[string, *entry]
	answers *expirable.LRU[string, *answers] // how long each shoot takes to answer, by namespace
}

// entry is a client and the version of the Secret that it was created from.
type entry struct {
	secret string
	client client.Client
	http   *http.Client
}

// New returns Clients that keep at most limit clients. They read Secrets with seed, a client that
// should bypass the manager's cache.
func New(seed client.Reader, limit int) *Clients {
	return &Clients{
		seed:    seed,
		mapper:  newMapper(),
		answers: expirable.NewLRU[string, *answers](ForAll, nil, 0),
		clients: expirable.NewLRU(limit, func(_ string, dropped *entry) {
			// http.Client.CloseIdleConnections ignores a transport that client-go has wrapped.
			utilnet.CloseIdleConnectionsFor(dropped.http.Transport)
		}, 0), // they do not expire
	}
}

// Forget drops the client and the answer times of the shoot.
func (c *Clients) Forget(namespace string) {
	c.clients.Remove(namespace)
	c.answers.Remove(namespace)
}

// For returns the client for the shoot whose control plane runs in the namespace of the seed. On
// each call it reads the kubeconfig from the Secret gardener-internal or, if there is none,
// gardener. This takes one or two requests to the seed and none to the shoot. For does not check
// whether the shoot answers. A request of the client fails with NoAnswerError after 8 seconds, or
// sooner if the shoot did not answer before.
func (c *Clients) For(ctx context.Context, namespace string) (client.Client, error) {
	secret, err := c.secret(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of shoot %s: %w", namespace, err)
	}
	version := fmt.Sprintf("%s %s %s", secret.Name, secret.UID, secret.ResourceVersion) // a recreated Secret has another UID
	if known, ok := c.clients.Get(namespace); ok && known.secret == version {
		lookups.WithLabelValues("hit").Inc()
		return known.client, nil
	}
	lookups.WithLabelValues("miss").Inc()
	created, err := c.create(namespace, secret)
	if err != nil {
		return nil, fmt.Errorf("create a client for shoot %s from Secret %s: %w", namespace, secret.Name, err)
	}
	created.secret = version
	c.clients.Remove(namespace) // running requests continue
	c.clients.Add(namespace, created)
	return created.client, nil
}

// secret returns the Secret with the kubeconfig. As util.NewClientForShoot of Gardener's library
// does, it prefers the address inside the seed, unless the controller runs outside.
func (c *Clients) secret(ctx context.Context, namespace string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if os.Getenv("GARDENER_SHOOT_CLIENT") != "external" {
		err := c.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1beta1constants.SecretNameGardenerInternal}, secret)
		if !apierrors.IsNotFound(err) {
			return secret, err
		}
	}
	return secret, c.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1beta1constants.SecretNameGardener}, secret)
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

// newMapper returns a REST mapper for every kind that the controller uses in a shoot. The kinds are
// the same in every Kubernetes version that Gardener supports. They are listed here because
// discovery would cost each client several requests. For another kind, the mapper returns an error
// (meta.IsNoMatchError).
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("DaemonSet"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), meta.RESTScopeNamespace)
	mapper.Add(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	mapper.Add(networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), meta.RESTScopeNamespace)
	mapper.Add(vpaautoscalingv1.SchemeGroupVersion.WithKind("VerticalPodAutoscaler"), meta.RESTScopeNamespace) // may be missing in a shoot
	return mapper
}
