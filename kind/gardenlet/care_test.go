package gardenlet

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	shootpkg "github.com/gardener/gardener/pkg/gardenlet/operation/shoot"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health/checker"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestHealthProblems: a condition of the Shoot is false because of a condition of an extension with
// the same type, or an unhealthy ManagedResource for the same cluster.
func TestHealthProblems(t *testing.T) {
	resource := func(class *string, healthy gardencorev1beta1.ConditionStatus) client.Object {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}}
		mr.Spec.Class = class
		for _, condition := range []gardencorev1beta1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
			mr.Status.Conditions = append(mr.Status.Conditions, gardencorev1beta1.Condition{Type: condition, Status: healthy, Message: "of the resource"})
		}
		mr.Status.Conditions = append(mr.Status.Conditions, gardencorev1beta1.Condition{
			Type: resourcesv1alpha1.ResourcesProgressing, Status: gardencorev1beta1.ConditionFalse,
		})
		return mr
	}
	extension := func(status gardencorev1beta1.ConditionStatus) client.Object {
		extension := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "e"}}
		extension.Status.Conditions = []gardencorev1beta1.Condition{
			{Type: gardencorev1beta1.ShootSystemComponentsHealthy, Status: status, Message: "of the extension"},
		}
		return extension
	}
	const (
		plane, system = gardencorev1beta1.ShootControlPlaneHealthy, gardencorev1beta1.ShootSystemComponentsHealthy
		good, bad     = gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionFalse
	)
	for name, tc := range map[string]struct {
		object    client.Object
		condition gardencorev1beta1.ConditionType
		want      string
	}{
		"resource for the seed":                 {resource(ptr.To("seed"), bad), plane, "of the resource"},
		"resource for the seed, shoot":          {resource(ptr.To("seed"), bad), system, ""},
		"resource for the shoot":                {resource(nil, bad), system, "of the resource"},
		"resource for the shoot, control plane": {resource(nil, bad), plane, ""},
		"healthy resource":                      {resource(nil, good), system, ""},
		"extension":                             {extension(bad), system, "of the extension"},
		"extension, another condition":          {extension(bad), plane, ""},
		"healthy extension":                     {extension(good), system, ""},
		"nothing checks monitoring":             {resource(nil, bad), gardencorev1beta1.ShootObservabilityComponentsHealthy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(tc.object).Build()
			h := healthCheck{
				checker: checker.NewHealthChecker(logr.Discard(), seed, clock.RealClock{}),
				shoot:   &shootpkg.Shoot{ControlPlaneNamespace: namespace}, seed: seed, clock: clock.RealClock{},
			}
			problem, err := h.problem(t.Context(), gardencorev1beta1.Condition{Type: tc.condition, Status: good})
			if err != nil {
				t.Fatal(err)
			}
			if message := ptr.Deref(problem, gardencorev1beta1.Condition{}).Message; (problem == nil) != (tc.want == "") || !strings.Contains(message, tc.want) {
				t.Errorf("problem %+v, want %q", problem, tc.want)
			}
		})
	}
}
