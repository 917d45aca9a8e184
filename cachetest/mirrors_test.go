package cachetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestMissingMirrors(t *testing.T) {
	const alpha, beta = "http://10.96.0.1:5000", "http://10.96.0.2:5000"
	mirrors := func(endpoints ...string) (all []nodeconfig.HostConfig) {
		for _, endpoint := range endpoints {
			all = append(all, nodeconfig.HostConfig{Hosts: []string{endpoint}})
		}
		return all
	}
	both := []nodeconfig.Registry{{Upstream: "alpha", Endpoint: alpha}, {Upstream: "beta", Endpoint: beta}}
	for name, test := range map[string]struct {
		wanted  []nodeconfig.Registry
		mirrors []nodeconfig.HostConfig
		want    []string
	}{
		"no caches":           {mirrors: mirrors(alpha)},
		"it has all":          {wanted: both, mirrors: mirrors(beta, alpha)},
		"it lacks a mirror":   {wanted: both, mirrors: mirrors(alpha), want: []string{"worker does not ask " + beta + " for beta"}},
		"an old address":      {wanted: both[:1], mirrors: mirrors(beta), want: []string{"worker does not ask " + alpha + " for alpha"}},
		"it was not readable": {wanted: both[1:], want: []string{"worker does not ask " + beta + " for beta"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := missingMirrors("worker", test.wanted, test.mirrors); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestWantedMirrors: if the seed does not answer, or a unit cannot be read, it is unknown which
// mirrors are missing.
func TestWantedMirrors(t *testing.T) {
	registry := nodeconfig.Registry{Upstream: "alpha.test", Endpoint: "http://10.96.0.1:5000", UpstreamURL: "https://alpha.test"}
	config := func(name, unit string) *extensionsv1alpha1.OperatingSystemConfig {
		osc := &extensionsv1alpha1.OperatingSystemConfig{}
		osc.Namespace, osc.Name = gardenlet.Namespace(gardenlet.DefaultShoot), name
		osc.Spec.Units = []extensionsv1alpha1.Unit{{Name: "kubelet.service"}}
		if unit != "" {
			osc.Spec.Units = append(osc.Spec.Units, extensionsv1alpha1.Unit{Name: nodeconfig.UnitName, Content: ptr.To(unit)})
		}
		return osc
	}
	refused := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("connection refused")
	}}
	unit := nodeconfig.Unit([]nodeconfig.Registry{registry}, 0)
	for name, test := range map[string]struct {
		configs []client.Object
		answers interceptor.Funcs
		want    []nodeconfig.Registry
		err     string
	}{
		"without a unit":   {configs: []client.Object{config("provision", "")}},
		"of one upstream":  {configs: []client.Object{config("provision", ""), config("reconcile", unit)}, want: []nodeconfig.Registry{registry}},
		"an unknown unit":  {configs: []client.Object{config("reconcile", "[Service]\nExecStart=/bin/true\n")}, err: "operating system config reconcile: "},
		"a seed in outage": {answers: refused, err: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(test.configs...).WithInterceptorFuncs(test.answers).Build()
			got, err := wantedMirrors(t.Context(), seed)
			if !reflect.DeepEqual(got, test.want) || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, %v, want %v, %q", got, err, test.want, test.err)
			}
		})
	}
}

func TestPollPending(t *testing.T) {
	hang := func(ctx context.Context) []string {
		<-ctx.Done()
		return []string{ctx.Err().Error()}
	}
	found := func(left ...string) func(context.Context) []string {
		return func(context.Context) []string { return left }
	}
	for name, test := range map[string]struct {
		calls []func(context.Context) []string // the last one repeats
		want  []string
		took  time.Duration
	}{
		"at once":              {calls: []func(context.Context) []string{found()}},
		"it answers in time":   {calls: []func(context.Context) []string{found("seed: refused"), found()}, took: time.Second},
		"it never answers":     {calls: []func(context.Context) []string{found("seed: EOF"), found("seed: refused")}, want: []string{"seed: refused"}, took: mirrorsTimeout},
		"the last call hangs":  {calls: []func(context.Context) []string{found("seed: refused"), hang}, want: []string{"seed: refused"}, took: mirrorsTimeout},
		"the first call hangs": {calls: []func(context.Context) []string{hang}, want: []string{"context deadline exceeded"}, took: mirrorsTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), 0
				left := pollPending(t.Context(), func(ctx context.Context) []string {
					calls++
					return test.calls[min(calls, len(test.calls))-1](ctx)
				})
				if took := time.Since(start); !slices.Equal(left, test.want) || took != test.took {
					t.Errorf("left %q after %s, want %q after %s", left, took, test.want, test.took)
				}
			})
		})
	}
}
