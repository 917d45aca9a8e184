package controller

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// services returns the cluster IPs of the Services in the shoot, by name.
func (l *landscape) services(t *testing.T) map[string]string {
	t.Helper()
	list := &corev1.ServiceList{}
	if err := l.shoot.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	ips := map[string]string{}
	for _, service := range list.Items {
		ips[service.Name] = service.Spec.ClusterIP
	}
	return ips
}

func renamed(suffix *string) func(*v1alpha3.RegistryConfig) {
	return func(c *v1alpha3.RegistryConfig) { c.Caches[0].ServiceNameSuffix = suffix }
}

func (l *landscape) reconciled(t *testing.T) {
	t.Helper()
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
}

// TestServiceRename checks that the previous address works for an hour, however often gardenlet
// reconciles in that time.
func TestServiceRename(t *testing.T) {
	l, _ := newRunningLandscape(t, renamed(ptr.To("new")))
	previous := l.services(t)[idOf(alpha).Name]
	l.reconciled(t)
	services := l.services(t)
	if services[idOf(alpha).Name] != previous || services["registry-new"] == "" {
		t.Errorf("after the change the Services are %v, want %s at %s too", services, idOf(alpha).Name, previous)
	}
	r, err := recordOf(l.extension(t))
	if err != nil || !slices.Equal(r.endpoints(alpha), []string{"http://" + services["registry-new"] + ":5000"}) {
		t.Errorf("the endpoint is %s, the Services are %v, error %v", r.endpoints(alpha), services, err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: idOf(alpha).Name}}
	if err := l.shoot.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil || service.Spec.Selector["app"] != idOf(alpha).Name {
		t.Errorf("the old Service selects %v, error %v", service.Spec.Selector, err)
	}
	l.later(59 * time.Minute)
	l.reconciled(t)
	if services := l.services(t); services[idOf(alpha).Name] != previous || services["registry-new"] == "" {
		t.Errorf("after 59 minutes the Services are %v", services)
	}
	l.later(time.Minute)
	l.reconciled(t)
	if services := l.services(t); services[idOf(alpha).Name] != "" || services["registry-new"] == "" {
		t.Errorf("after an hour the Services are %v", services)
	}
	l.configure(t, renamed(nil))
	l.reconciled(t)
	l.later(time.Hour)
	l.reconciled(t)
	if services := l.services(t); services[idOf(alpha).Name] == "" || services["registry-new"] != "" {
		t.Errorf("after renaming it back, the Services are %v", services)
	}
}

// TestServiceRenameWhileHibernated checks that the previous Service exists for an hour after the
// shoot wakes up. The nodes may be configured with its address.
func TestServiceRenameWhileHibernated(t *testing.T) {
	l, _ := newRunningLandscape(t, renamed(ptr.To("new")))
	l.changeShoot(t, hibernated)
	l.reconciled(t)
	for _, want := range []bool{true, false} {
		l.later(time.Hour)
		l.reconciled(t)
		l.changeShoot(t)
		l.reconciled(t)
		if services := l.services(t); (services[idOf(alpha).Name] != "") != want || services["registry-new"] == "" {
			t.Errorf("after waking up, the Services are %v, want the old one: %t", services, want)
		}
	}
}

// TestServiceRenameThatFails checks that a failed attempt keeps the previous Service. The retry
// follows immediately, before nodes use the new Service.
func TestServiceRenameThatFails(t *testing.T) {
	l, w := newRunningLandscape(t, renamed(ptr.To("new")))
	w.fail = func(number int, done bool) error {
		if !done && w.requests[number-1] == "shoot read *v1.PersistentVolumeClaimList" {
			return errLost
		}
		return nil
	}
	for range 3 {
		if err := l.reconcile(t); !errors.Is(err, errLost) {
			t.Errorf("error = %v", err)
		}
	}
	names := l.services(t)
	if want := []string{idOf(alpha).Name, "registry-new"}; slices.ContainsFunc(want, func(n string) bool { return names[n] == "" }) {
		t.Errorf("the Services are %v", names)
	}
}

func serviceOf(upstream, ip string, changes ...func(*corev1.Service)) corev1.Service {
	service := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:        idOf(upstream).Name,
			Labels:      map[string]string{v1alpha3.LabelApp: idOf(upstream).Name, v1alpha3.LabelUpstreamHost: idOf(upstream).HostLabel},
			Annotations: map[string]string{v1alpha3.AnnotationUpstream: upstream},
		},
		Spec: corev1.ServiceSpec{ClusterIP: ip},
	}
	for _, change := range changes {
		change(&service)
	}
	return service
}

func TestMatchServices(t *testing.T) {
	terminating := func(s *corev1.Service) { now := metav1.Now(); s.DeletionTimestamp = &now }
	unrelated := func(s *corev1.Service) { s.Name, s.Annotations = "mirror", nil }
	impostor := func(s *corev1.Service) { s.Name = "mirror" }
	one, two := serviceOf(alpha, "10.0.0.1"), serviceOf(beta, "10.0.0.2")
	const endpointOne, endpointTwo = "http://10.0.0.1:5000", "http://10.0.0.2:5000"
	both := []string{endpointOne, endpointTwo}
	for name, test := range map[string]struct {
		services  []corev1.Service
		endpoints []string
		missing   []string
	}{
		"none":                     {nil, nil, []string{alpha, beta}},
		"both":                     {[]corev1.Service{two, one}, both, nil},
		"one of two":               {[]corev1.Service{two}, []string{endpointTwo}, []string{alpha}},
		"unrelated Service":        {[]corev1.Service{serviceOf(alpha, "10.0.0.9", unrelated), one, two}, both, nil},
		"only an impostor":         {[]corev1.Service{serviceOf(alpha, "10.0.0.9", impostor), two}, []string{endpointTwo}, []string{alpha}},
		"Service of removed cache": {[]corev1.Service{serviceOf("gamma.upstream.test", "10.0.0.3"), one, two}, both, nil},
		"terminating":              {[]corev1.Service{serviceOf(alpha, "10.0.0.1", terminating), two}, []string{endpointTwo}, []string{alpha}},
		"no cluster IP":            {[]corev1.Service{serviceOf(alpha, ""), serviceOf(beta, corev1.ClusterIPNone)}, nil, []string{alpha, beta}},
		"IPv6":                     {[]corev1.Service{serviceOf(alpha, "2a05::1"), two}, []string{"http://[2a05::1]:5000", endpointTwo}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: alpha, HTTP: &v1alpha3.HTTP{}}, {Upstream: beta, HTTP: &v1alpha3.HTTP{}}}}
			v1alpha3.SetDefaults(config)
			found, missing := matchServices(test.services, &target{config: config, identities: v1alpha3.Identify(config.Caches, nil)})
			var endpoints []string
			for _, status := range found {
				endpoints = append(endpoints, status.Endpoint)
			}
			if !slices.Equal(endpoints, test.endpoints) || !slices.Equal(missing, test.missing) {
				t.Errorf("endpoints %v, missing %v, want %v, %v", endpoints, missing, test.endpoints, test.missing)
			}
		})
	}
}

func withTLS(on bool) func(*v1alpha3.RegistryConfig) {
	return func(c *v1alpha3.RegistryConfig) { c.Caches[0].HTTP = &v1alpha3.HTTP{TLS: on} }
}

// deployedCertificate returns the certificate of the deployed cache of alpha, or nil.
func (l *landscape) deployedCertificate(t *testing.T) *x509.Certificate {
	t.Helper()
	objects, err := managedresources.GetObjects(t.Context(), l.seed, namespace, cachesName)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		secret, ok := object.(*corev1.Secret)
		if !ok || len(secret.Data["tls.crt"]) == 0 {
			continue
		}
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf
	}
	return nil
}

// assertTrusted checks that a node trusts the cache of alpha, with the endpoint and the CA bundle
// in the status.
func (l *landscape) assertTrusted(t *testing.T) {
	t.Helper()
	r, err := recordOf(l.extension(t))
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := url.Parse(r.status.Caches[0].Endpoint)
	if err != nil || endpoint.Scheme != "https" {
		t.Fatalf("endpoint = %s, %v", endpoint, err)
	}
	pool := x509.NewCertPool()
	if r.status.CABundle == nil || !pool.AppendCertsFromPEM([]byte(*r.status.CABundle)) {
		t.Fatalf("caBundle = %v", r.status.CABundle)
	}
	leaf := l.deployedCertificate(t)
	if leaf == nil {
		t.Fatal("the cache has no certificate")
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: endpoint.Hostname()}); err != nil {
		t.Error(err)
	}
}

// TestTLS checks a new cache, whose cluster IP is known only after it was deployed once.
func TestTLS(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	l.configure(t, withTLS(true))
	w := l.tap()
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	l.assertTrusted(t)
	w.requests = nil
	if err := l.reconcile(t); err != nil || len(w.writes()) > 0 {
		t.Errorf("a reconciliation without a change: error %v, writes %q", err, w.writes())
	}
}

// TestTLSFlips turns TLS off and on. The status must match the deployed cache each time.
func TestTLSFlips(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	for _, on := range []bool{true, false, true} {
		l.configure(t, withTLS(on))
		if err := l.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if on {
			l.assertTrusted(t)
			continue
		}
		if got := l.recorded(t); got[0] != "status with CA false" || got[1] != alpha+" by http" {
			t.Errorf("status is %q", got)
		}
		if l.deployedCertificate(t) != nil || strings.Contains(l.summary(t), "certificate ") {
			t.Errorf("there is still a certificate:\n%s", l.summary(t))
		}
	}
}

// TestTLSKeepsRunningCache checks a Service that is deleted and recreated with another cluster IP.
func TestTLSKeepsRunningCache(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	l.configure(t, withTLS(true))
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: idOf(alpha).Name}
	set, service := &appsv1.StatefulSet{}, &corev1.Service{}
	for _, object := range []client.Object{set, service} {
		if err := l.shoot.Get(t.Context(), key, object); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.shoot.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	l.resync(t, servicesName)
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	l.assertTrusted(t)
	now := &appsv1.StatefulSet{}
	if err := l.shoot.Get(t.Context(), key, now); err != nil || now.UID != set.UID {
		t.Errorf("the StatefulSet was replaced: %v", err)
	}
	if address := l.deployedCertificate(t).IPAddresses[0]; address.Equal(net.ParseIP(service.Spec.ClusterIP)) {
		t.Errorf("the certificate is still for %s", address)
	}
}

func rotating(phase gardencorev1beta1.CredentialsRotationPhase) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase, LastInitiationTime: &metav1.Time{Time: time.Unix(1, 0)}},
		}}
	}
}

// TestRotationWaitsForTheCaches checks that nodes get the new CA when the caches use it, or 30
// seconds after the start of a rollout that does not end.
func TestRotationWaitsForTheCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
		l.configure(t, withTLS(true))
		l.reconciled(t)
		l.actuator.waits = defaultTiming()
		l.changeShoot(t, rotating(gardencorev1beta1.RotationPreparing))
		l.reconciled(t)
		l.changeShoot(t, rotating(gardencorev1beta1.RotationCompleting))
		l.progressing = time.Now()
		for time.Since(l.progressing) < 30*time.Second {
			if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), "the caches are not rolled out yet") {
				t.Fatalf("after %s: error = %v", time.Since(l.progressing), err)
			}
			<-time.After(l.delay(t, retry.InProgress))
		}
		l.reconciled(t)
		l.assertTrusted(t)
	})
}

// TestRotation checks that nodes trust the cache in each phase of a CA rotation.
func TestRotation(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster())
	l.configure(t, withTLS(true))
	for _, phase := range []gardencorev1beta1.CredentialsRotationPhase{
		"", gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationCompleting, gardencorev1beta1.RotationCompleted,
	} {
		if phase != "" {
			l.changeShoot(t, rotating(phase))
		}
		if err := l.reconcile(t); err != nil {
			t.Fatal(err)
		}
		l.assertTrusted(t)
	}
}

// changeShoot changes the Cluster, as gardenlet does.
func (l *landscape) changeShoot(t *testing.T, changes ...func(*gardencorev1beta1.Shoot)) {
	t.Helper()
	now := &extensionsv1alpha1.Cluster{}
	if err := l.seed.Get(t.Context(), client.ObjectKey{Name: namespace}, now); err != nil {
		t.Fatal(err)
	}
	now.Spec = cluster(changes...).Spec
	if err := l.seed.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := l.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestServiceThatCannotBeCreated checks that such a Service does not block changes to the other
// caches.
func TestServiceThatCannotBeCreated(t *testing.T) {
	l, _ := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) {
		c.Caches = append(c.Caches[1:], v1alpha3.RegistryCache{Upstream: gamma, HTTP: &v1alpha3.HTTP{}})
	})
	l.applyError = "exceeded quota"
	for range 2 { // the second attempt finds the others up to date
		if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), gamma) || !strings.Contains(err.Error(), l.applyError) {
			t.Errorf("error = %v", err)
		}
	}
	if list := l.inShoot(t); slices.Contains(list, "claim/"+claimOf(alpha).Name) || !slices.Contains(list, "claim/"+claimOf(beta).Name) {
		t.Errorf("the removed cache stays: %q", list)
	}
}
