package operatingsystemconfig

import (
	"context"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestMutatePassesCertificates(t *testing.T) {
	secure := alpha
	secure.Endpoint, secure.EndpointCA = "https://10.4.0.1:5000", []byte(golden.CACertificate)
	private := beta
	private.UpstreamURL, private.UpstreamCA = "https://beta.upstream.test:5000", []byte(golden.CACertificate)
	both := secure
	both.UpstreamCA = []byte(golden.CACertificate)
	quoted := strconv.Quote(golden.CACertificate)
	const secureStatus = `{"upstream":"alpha.upstream.test","endpoint":"https://10.4.0.1:5000","remoteURL":"https://alpha.upstream.test"`
	const privateStatus = `{"upstream":"beta.upstream.test:5000","endpoint":"http://10.4.0.2:5000","remoteURL":"https://beta.upstream.test:5000"`
	for name, test := range map[string]struct {
		caches, rest string
		want         []nodeconfig.Registry
	}{
		"only for HTTPS endpoints": {secureStatus + "}," + betaStatus, `,"caBundle":` + quoted, []nodeconfig.Registry{secure, beta}},
		"for one upstream":         {privateStatus + `,"upstreamCABundle":` + quoted + "}," + alphaStatus, "", []nodeconfig.Registry{alpha, private}},
		"for both":                 {secureStatus + `,"upstreamCABundle":` + quoted + "}", `,"caBundle":` + quoted, []nodeconfig.Registry{both}},
	} {
		t.Run(name, func(t *testing.T) {
			extension := newExtension(`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryStatus","caches":[` + test.caches + `]` + test.rest + `}`)
			osc := mutate(t, newWebhook(t, &gardencorev1beta1.Shoot{}, extension), newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile))
			unit := extensionswebhook.UnitWithName(osc.Spec.Units, nodeconfig.UnitName)
			if got, err := nodeconfig.ParseUnit(*unit.Content); err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("the unit configures %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// TestMutateReadsOnce checks that an admission reads the Extension once from the API server, or not
// at all if the shoot is hibernated.
func TestMutateReadsOnce(t *testing.T) {
	for name, test := range map[string]struct {
		hibernated   bool
		live, cached int32
	}{
		"shoot with nodes": {false, 1, 1},
		"hibernated shoot": {true, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var live, cached atomic.Int32
			mgr := newManager(t, &gardencorev1beta1.Shoot{
				Spec: gardencorev1beta1.ShootSpec{Hibernation: &gardencorev1beta1.Hibernation{Enabled: &test.hibernated}},
			}, newExtension(status(alphaStatus)))
			mgr.live, mgr.cached = counting(mgr.live, &live), counting(mgr.cached, &cached)
			webhook, err := New(mgr)
			if err != nil {
				t.Fatal(err)
			}
			mutate(t, webhook, newOSC(extensionsv1alpha1.OperatingSystemConfigPurposeReconcile))
			if live.Load() != test.live || cached.Load() != test.cached {
				t.Errorf("%d live reads, want %d; %d from the cache, want %d", live.Load(), test.live, cached.Load(), test.cached)
			}
		})
	}
}

// counting returns a client that counts its reads in calls.
func counting(c client.Client, calls *atomic.Int32) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			calls.Add(1)
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			calls.Add(1)
			return c.List(ctx, list, opts...)
		},
	})
}
