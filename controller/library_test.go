package controller

import (
	"context"
	"strings"
	"testing"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller/extension"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// behindManager is a manager whose cache has an outdated Extension.
type behindManager struct {
	manager.Manager
	client   client.Client
	outdated *extensionsv1alpha1.Extension
}

func (m behindManager) GetClient() client.Client    { return behindClient{m.client, m.outdated} }
func (m behindManager) GetAPIReader() client.Reader { return m.client }

type behindClient struct {
	client.Client
	outdated *extensionsv1alpha1.Extension
}

func (c behindClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if ex, ok := object.(*extensionsv1alpha1.Extension); ok {
		c.outdated.DeepCopyInto(ex)
		return nil
	}
	return c.Client.Get(ctx, key, object, options...)
}

// TestOutdatedExtension: the extension library reads Extensions from the manager's cache, which may
// lack the actuator's last write. The actuator must act on the current status, or it would not
// clean the nodes.
func TestOutdatedExtension(t *testing.T) {
	const finalizer = extensionscontroller.FinalizerPrefix + "/" + v1alpha3.ExtensionType
	for name, test := range map[string]struct {
		change func(*testing.T, *landscape)
		writes []string // a part of the expected ones, in order
	}{
		"upstream removed": {func(t *testing.T, l *landscape) {
			l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
		}, []string{"apply " + cleanerName, "delete " + cleanerName, "status [beta.upstream.test]"}},
		"extension removed": {func(t *testing.T, l *landscape) {
			if err := l.seed.Delete(t.Context(), l.extension(t)); err != nil {
				t.Fatal(err)
			}
		}, []string{"apply " + cleanerName, "delete " + cleanerName, "status []"}},
	} {
		t.Run(name, func(t *testing.T) {
			ex := newExtension([]string{alpha, beta}, nil)
			ex.Finalizers = []string{finalizer}
			shootNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: namespace, Labels: map[string]string{v1beta1constants.GardenRole: v1beta1constants.GardenRoleShoot},
			}}
			l := newLandscape(t, ex, cluster(), shootNamespace)
			if err := l.reconcile(t); err != nil {
				t.Fatal(err)
			}
			test.change(t, l)
			outdated := l.extension(t)
			outdated.Status = extensionsv1alpha1.ExtensionStatus{}
			mgr := patientManager{behindManager{client: l.seed, outdated: outdated}, l.actuator.retries}
			reconciler := extensionscontroller.NewReconciler(mgr, extensionscontroller.AddArgs{
				Actuator: l.actuator, FinalizerSuffix: v1alpha3.ExtensionType, Type: v1alpha3.ExtensionType,
			})
			l.log = nil
			if _, err := reconciler.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if writes := strings.Join(l.log, "\n  "); !strings.Contains(writes, strings.Join(test.writes, "\n  ")) {
				t.Errorf("writes:\n  %s\nwant among them:\n  %s", writes, strings.Join(test.writes, "\n  "))
			}
		})
	}
}
