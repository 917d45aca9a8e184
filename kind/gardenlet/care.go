package gardenlet

import (
	"context"
	"fmt"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/client/kubernetes/clientmap"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
	"github.com/gardener/gardener/pkg/gardenlet/operation"
	seedpkg "github.com/gardener/gardener/pkg/gardenlet/operation/seed"
	shootpkg "github.com/gardener/gardener/pkg/gardenlet/operation/shoot"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health/checker"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// addCare adds gardenlet's care controller, which writes the Shoot's conditions and constraints. It
// replaces what needs a control plane that gardenlet has deployed: kind's is not in the seed.
func (g *Gardenlet) addCare(mgr manager.Manager, garden cluster.Cluster, config gardenletconfigv1alpha1.GardenletConfiguration) error {
	care.NewOperation = func(ctx context.Context, _ logr.Logger, garden client.Client, _ kubernetes.Interface, _ clientmap.ClientMap,
		_ *gardenletconfigv1alpha1.GardenletConfiguration, _ *gardencorev1beta1.Gardener, _ string, _ map[string]*corev1.Secret,
		_ *gardenerutils.Domain, _ []*gardenerutils.Domain, shoot *gardencorev1beta1.Shoot) (*operation.Operation, error) {
		landscape, err := readLandscape(ctx, garden, shoot)
		if err != nil {
			return nil, err
		}
		o, err := g.prepare(ctx, g.adapt(shoot), landscape)
		if err != nil {
			return nil, err
		}
		return o.Operation, nil
	}
	// gardenlet's own function looks for the API server's Deployment in the seed.
	connect := func() (kubernetes.Interface, bool, error) { return g.Shoot, true, nil } //nolint:unparam // care.ShootClientInit
	care.NewHealthCheck = func(log logr.Logger, shoot *shootpkg.Shoot, seed *seedpkg.Seed, seedClient kubernetes.Interface, garden client.Client,
		_ care.ShootClientInit, clock clock.Clock, config *gardenletconfigv1alpha1.GardenletConfiguration,
		thresholds map[gardencorev1beta1.ConditionType]time.Duration) care.HealthCheck {
		return healthCheck{
			Health:  care.NewHealth(log, shoot, seed, seedClient, garden, connect, clock, config, thresholds),
			checker: checker.NewHealthChecker(log, seedClient.Client(), clock, checker.WithConditionThresholds(thresholds)),
			shoot:   shoot, client: g.Shoot, seed: seedClient.Client(), clock: clock, log: log,
		}
	}
	care.NewConstraintCheck = func(log logr.Logger, shoot *shootpkg.Shoot, seed client.Client, _ care.ShootClientInit, clock clock.Clock) care.ConstraintCheck {
		return care.NewConstraint(log, shoot, seed, connect, clock)
	}
	return (&care.Reconciler{SeedClientSet: g.Seed, Config: config, Identity: gardener.Identity(), SeedName: gardener.SeedName}).
		AddToManager(mgr, garden)
}

// healthCheck does the checks of care.Health that do not need etcd, kube-apiserver, VPN and
// monitoring in the seed.
type healthCheck struct {
	*care.Health
	checker *checker.HealthChecker
	shoot   *shootpkg.Shoot
	client  kubernetes.Interface // for the shoot
	seed    client.Client
	clock   clock.Clock
	log     logr.Logger
}

// Check implements care.HealthCheck.
func (h healthCheck) Check(ctx context.Context, _ *metav1.Duration, shootConditions care.ShootConditions) []gardencorev1beta1.Condition {
	conditions, status := shootConditions.ConvertToSlice(), h.shoot.GetInfo().Status
	for i, condition := range conditions {
		reason, message := string(condition.Type)+"Running", "All checks of the testbed succeeded."
		var problem *gardencorev1beta1.Condition
		var err error
		if h.shoot.HibernationEnabled || status.IsHibernated {
			reason, message = "ConditionNotChecked", "Shoot cluster has been hibernated."
		} else {
			problem, err = h.problem(ctx, condition)
		}
		if problem == nil {
			problem = new(v1beta1helper.UpdatedConditionWithClock(h.clock, condition, gardencorev1beta1.ConditionTrue, reason, message))
		}
		conditions[i] = v1beta1helper.NewConditionOrError(h.clock, condition, problem, err)
	}
	return care.PardonConditions(h.clock, conditions, status.LastOperation, status.LastErrors)
}

// problem returns the condition if a check of its type fails, or else nil.
func (h healthCheck) problem(ctx context.Context, condition gardencorev1beta1.Condition) (*gardencorev1beta1.Condition, error) {
	namespace := client.InNamespace(h.shoot.ControlPlaneNamespace)
	extensions, resources := &extensionsv1alpha1.ExtensionList{}, &resourcesv1alpha1.ManagedResourceList{}
	for _, list := range []client.ObjectList{extensions, resources} {
		if err := h.seed.List(ctx, list, namespace); err != nil {
			return nil, fmt.Errorf("list the extensions and ManagedResources of the shoot: %w", err)
		}
	}
	if problem := h.checker.CheckExtensionCondition(condition, reported(extensions.Items, condition.Type), nil); problem != nil {
		return problem, nil
	}
	// ManagedResources of a class are for the seed.
	forSeed := condition.Type == gardencorev1beta1.ShootControlPlaneHealthy
	of := func(resource resourcesv1alpha1.ManagedResource) bool { return (resource.Spec.Class != nil) == forSeed }
	switch condition.Type {
	case gardencorev1beta1.ShootAPIServerAvailable:
		failed := func(reason, message string) gardencorev1beta1.Condition {
			return v1beta1helper.UpdatedConditionWithClock(h.clock, condition, gardencorev1beta1.ConditionFalse, reason, message)
		}
		return new(health.CheckAPIServerAvailability(ctx, h.clock, h.log, condition, h.client.RESTClient(), failed)), nil
	case gardencorev1beta1.ShootEveryNodeReady:
		return h.CheckClusterNodes(ctx, h.client, condition)
	case gardencorev1beta1.ShootControlPlaneHealthy, gardencorev1beta1.ShootSystemComponentsHealthy:
		return h.checker.CheckManagedResources(condition, resources.Items, of, nil, nil), nil
	}
	return nil, nil
}

// reported returns the conditions of the type that extensions report.
func reported(extensions []extensionsv1alpha1.Extension, conditionType gardencorev1beta1.ConditionType) []checker.ExtensionCondition {
	var reported []checker.ExtensionCondition
	for _, extension := range extensions {
		if condition := v1beta1helper.GetCondition(extension.Status.Conditions, conditionType); condition != nil {
			reported = append(reported, checker.ExtensionCondition{
				Condition: *condition, ExtensionType: extensionsv1alpha1.ExtensionResource,
				ExtensionName: extension.Name, ExtensionNamespace: extension.Namespace,
			})
		}
	}
	return reported
}
