package status

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// TestGarden: the table shows each Shoot's last operation, and what is wrong with it.
func TestGarden(t *testing.T) {
	good, bad := &gardencorev1beta1.Shoot{}, &gardencorev1beta1.Shoot{}
	good.Name, bad.Name = "good", "bad"
	good.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", Progress: 100}
	good.Status.Conditions = []gardencorev1beta1.Condition{{Type: "A", Status: gardencorev1beta1.ConditionTrue, Message: "fine"}}
	bad.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "task failed"}}
	bad.Status.Conditions = []gardencorev1beta1.Condition{{Type: "B", Status: gardencorev1beta1.ConditionFalse, Message: "a pod is missing"}}
	for name, tc := range map[string]struct {
		garden *Garden
		want   string
	}{
		"none":    {nil, ""},
		"problem": {&Garden{Problem: "no answer", Problems: []string{"an API is away"}}, "GARDEN\tno answer\n  ✗ an API is away\n"},
		"shoots": {&Garden{Renewed: time.Now(), Shoots: []GardenShoot{gardenShoot(good), gardenShoot(bad)}}, strings.Join([]string{
			"GARDEN\tgardenlet renewed its lease 0s ago", "  ✓ good\tReconcile Succeeded 100 %", "  ✗ bad\tno operation yet",
			"      task failed", "      B False: a pod is missing", "",
		}, "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			(&Testbed{Garden: tc.garden}).writeGarden(&out)
			if out.String() != tc.want {
				t.Errorf("got %q, want %q", &out, tc.want)
			}
		})
	}
	if err := (&Garden{}).read(t.Context(), nil); err == nil || err.Error() != "the seed does not answer" {
		t.Errorf("without a seed: %v", err)
	}
}

// TestGardenProblems: each part of the garden is checked. What can be read is shown even if the API
// for the rest does not answer.
func TestGardenProblems(t *testing.T) {
	service := func(available apiregistrationv1.ConditionStatus) *apiregistrationv1.APIService {
		service := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.core.gardener.cloud"}}
		service.Status.Conditions = []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: available, Message: "no endpoints"}}
		return service
	}
	lease := func(age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenerSeedLeaseNamespace, Name: gardener.SeedName},
			Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-age)))},
		}
	}
	installation := func(healthy gardencorev1beta1.ConditionStatus) *gardencorev1beta1.ControllerInstallation {
		installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "sample-x5sjk"}}
		installation.Status.Conditions = []gardencorev1beta1.Condition{
			{Type: gardencorev1beta1.ControllerInstallationValid, Status: gardencorev1beta1.ConditionTrue},
			{Type: gardencorev1beta1.ControllerInstallationInstalled, Status: gardencorev1beta1.ConditionTrue},
			{Type: gardencorev1beta1.ControllerInstallationHealthy, Status: healthy, Message: "a pod is missing"},
			{Type: gardencorev1beta1.ControllerInstallationProgressing, Status: gardencorev1beta1.ConditionFalse},
		}
		return installation
	}
	good := []client.Object{service(apiregistrationv1.ConditionTrue), lease(time.Second), installation(gardencorev1beta1.ConditionTrue)}
	for name, tc := range map[string]struct {
		replaced int // the object of good that bad replaces
		bad      client.Object
		away     bool // Gardener's API does not answer
		want     string
	}{
		"good":                  {0, good[0], false, ""},
		"an APIService":         {0, service(apiregistrationv1.ConditionFalse), true, "APIService v1.core.gardener.cloud: .*no endpoints"},
		"gardenlet":             {1, lease(time.Hour), false, "gardenlet has not renewed its lease since "},
		"the extension":         {2, installation(gardencorev1beta1.ConditionFalse), false, "ControllerInstallation sample-x5sjk is not Healthy: a pod is missing"},
		"the extension, unseen": {2, &gardencorev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, false, "(?s)Valid: not reported.*Installed: not reported.*Healthy: not reported"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := slices.Clone(good)
			objects[tc.replaced] = tc.bad
			garden := fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, ok := list.(*gardencorev1beta1.ControllerInstallationList); ok && tc.away {
						return errors.New("no answer")
					}
					return c.List(ctx, list, options...)
				},
			}).Build()
			var found Garden
			if err := found.readFrom(t.Context(), garden); (err != nil) != tc.away {
				t.Errorf("error %v", err)
			}
			problems := strings.Join(found.Problems, "\n")
			if (problems == "") != (tc.want == "") || !regexp.MustCompile(tc.want).MatchString(problems) {
				t.Errorf("problems %q, want %q", problems, tc.want)
			}
			if found.Renewed.IsZero() {
				t.Error("the lease was not read")
			}
		})
	}
}
