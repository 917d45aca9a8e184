package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// points returns the requests at which an interruption makes a difference, as numbers from 1: all
// writes, and the first of equal reads. A later equal read is omitted: its failure leaves the same
// state as an end of the process before the next write.
func points(requests []string) []int {
	var numbers []int
	for i, request := range requests {
		if !strings.Contains(request, " read ") || !slices.Contains(requests[:i], request) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// breakAt interrupts a reconciliation at a request in all ways that make a difference: a failed
// read, a write whose response is lost, and a process that ends before a write.
func breakAt(at int, request string) map[string]func(w *wire, cancel context.CancelFunc) {
	lost := func(lostDone bool) func(*wire, context.CancelFunc) {
		return func(w *wire, _ context.CancelFunc) {
			w.fail = func(n int, done bool) error {
				if n == at && done == lostDone {
					return errLost
				}
				return nil
			}
		}
	}
	if strings.Contains(request, " read ") {
		return map[string]func(*wire, context.CancelFunc){"the request is lost": lost(false)}
	}
	return map[string]func(*wire, context.CancelFunc){
		"the response is lost": lost(true),
		"the process ends": func(w *wire, cancel context.CancelFunc) {
			w.fail = func(n int, _ bool) error {
				if n == at {
					cancel()
					return context.Canceled
				}
				return nil
			}
		},
	}
}

// change describes a change to a shoot with caches for alpha and beta.
type change struct {
	config func(*v1alpha3.RegistryConfig)
	act    func(*Actuator, context.Context, *extensionsv1alpha1.Extension) error
}

func reconciling(config func(*v1alpha3.RegistryConfig)) change {
	return change{config, func(a *Actuator, ctx context.Context, ex *extensionsv1alpha1.Extension) error {
		return a.Reconcile(ctx, logr.Discard(), ex)
	}}
}

var changes = map[string]change{
	"an upstream is added": reconciling(func(c *v1alpha3.RegistryConfig) {
		c.Caches = append(c.Caches, v1alpha3.RegistryCache{Upstream: "gamma.upstream.test"})
	}),
	"an upstream is removed": reconciling(func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] }),
	"a volume grows": reconciling(func(c *v1alpha3.RegistryConfig) {
		c.Caches[0].Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse("20Gi"))}
	}),
	"a cache becomes highly available": reconciling(func(c *v1alpha3.RegistryConfig) {
		c.Caches[0].HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
	}),
	"TLS is turned on": reconciling(func(c *v1alpha3.RegistryConfig) { c.Caches[0].HTTP = &v1alpha3.HTTP{TLS: true} }),
	"all at once": reconciling(func(c *v1alpha3.RegistryConfig) {
		c.Caches = append(c.Caches[1:], v1alpha3.RegistryCache{Upstream: "gamma.upstream.test", HTTP: &v1alpha3.HTTP{TLS: true}})
		c.Caches[0].Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse("20Gi"))}
	}),
	"the extension is disabled": {nil, func(a *Actuator, ctx context.Context, ex *extensionsv1alpha1.Extension) error {
		return a.Delete(ctx, logr.Discard(), ex)
	}},
	"the control plane moves": {nil, func(a *Actuator, ctx context.Context, ex *extensionsv1alpha1.Extension) error {
		return a.Migrate(ctx, logr.Discard(), ex)
	}},
}

// newRunningLandscape returns a landscape with running caches and an unreconciled config change.
func newRunningLandscape(t *testing.T, config func(*v1alpha3.RegistryConfig)) (*landscape, *wire) {
	t.Helper()
	l := newLandscape(t, newExtension([]string{alpha, beta}, nil), cluster())
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l.configure(t, config)
	}
	return l, l.tap()
}

// configure changes the providerConfig, as a user does.
func (l *landscape) configure(t *testing.T, change func(*v1alpha3.RegistryConfig)) {
	t.Helper()
	ex := l.extension(t)
	config, err := v1alpha3.DecodeConfig(ex.Spec.ProviderConfig.Raw)
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	ex.Spec.ProviderConfig.Raw = encode(config)
	if err := l.seed.Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
}

// TestInterruption interrupts every change at every point in every way, and retries it as the
// controller does. The result must be the same as without the interruption.
func TestInterruption(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			l, w := newRunningLandscape(t, change.config)
			if err := change.act(l.actuator, t.Context(), l.extension(t)); err != nil {
				t.Fatal(err)
			}
			want := l.summary(t)
			for _, at := range points(w.requests) {
				for how, arm := range breakAt(at, w.requests[at-1]) {
					interrupt(t, change, fmt.Sprintf("%s at request %d, %s", how, at, w.requests[at-1]), want, arm)
				}
			}
		})
	}
}

func interrupt(t *testing.T, change change, what, want string, arm func(*wire, context.CancelFunc)) {
	t.Helper()
	l, w := newRunningLandscape(t, change.config)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	arm(w, cancel)
	_ = change.act(l.actuator, ctx, l.extension(t)) // no error if a poll repeats the lost request
	w.fail = nil
	if err := change.act(l.actuator, t.Context(), l.extension(t)); err != nil {
		t.Errorf("%s: the retry fails: %v", what, err)
		return
	}
	if got := l.summary(t); got != want {
		t.Errorf("%s: the result is\n%s\nwant\n%s", what, got, want)
	}
}

// summary describes the state of a landscape without keys, addresses and times, which differ
// between runs.
func (l *landscape) summary(t *testing.T) string {
	t.Helper()
	var lines []string
	mrs, secrets := &resourcesv1alpha1.ManagedResourceList{}, &corev1.SecretList{}
	services, sets, claims := &corev1.ServiceList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}
	daemons, pods := &appsv1.DaemonSetList{}, &corev1.PodList{}
	for list, c := range map[client.ObjectList]client.Client{mrs: l.seed, secrets: l.seed, services: l.shoot, sets: l.shoot, claims: l.shoot, daemons: l.shoot, pods: l.shoot} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	for _, mr := range mrs.Items {
		lines = append(lines, fmt.Sprintf("ManagedResource %s keepObjects=%t", mr.Name, ptr.Deref(mr.Spec.KeepObjects, false)))
	}
	for _, secret := range secrets.Items {
		if secret.Labels["managed-by"] != "" {
			lines = append(lines, "certificate "+secret.Labels["name"])
		}
	}
	for _, service := range services.Items {
		lines = append(lines, "Service "+service.Annotations[v1alpha3.AnnotationUpstream])
	}
	for _, set := range sets.Items {
		request := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
		lines = append(lines, fmt.Sprintf("StatefulSet %s of %s, %d volumes", set.Name, request.String(), len(set.Spec.Template.Spec.Volumes)))
	}
	for _, claim := range claims.Items {
		request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		lines = append(lines, fmt.Sprintf("claim %s of %s", claim.Name, request.String()))
	}
	for _, pod := range pods.Items {
		lines = append(lines, "pod "+pod.Name)
	}
	for _, daemon := range daemons.Items {
		lines = append(lines, "DaemonSet "+daemon.Name)
	}
	slices.Sort(lines)
	return strings.Join(append(lines, l.recorded(t)...), "\n")
}

func (l *landscape) recorded(t *testing.T) []string {
	t.Helper()
	r, err := recordOf(l.extension(t))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	if r.status != nil {
		lines = append(lines, fmt.Sprintf("status with CA %t", *r.status.CABundle != ""))
		for _, c := range r.status.Caches {
			scheme, _, _ := strings.Cut(c.Endpoint, "://")
			lines = append(lines, c.Upstream+" by "+scheme)
		}
	}
	if r.applied != nil {
		for _, c := range r.applied.Caches {
			lines = append(lines, fmt.Sprintf("applied %s of %s, TLS %t", c.Upstream, c.Volume.Size.String(), cache.ServesTLS(c)))
		}
	}
	for _, condition := range l.extension(t).Status.Conditions {
		lines = append(lines, fmt.Sprintf("condition %s %s", condition.Type, condition.Status))
	}
	return lines
}
