// Package osextension is the Gardener extension for the operating system of the testbed's machines,
// which are kind nodes. It reconciles OperatingSystemConfigs of type "kind" with Gardener's
// extension library and adds nothing to them.
//
// The package must not contain code for the installation of its pod or for other extensions.
package osextension

import (
	"context"
	"fmt"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/operatingsystemconfig"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// HealthPort is the port on which the extension's pod serves /readyz.
const HealthPort = 8081

// Run reconciles the seed's OperatingSystemConfigs until ctx ends, and serves /readyz at the
// address health, unless that is "0". It does no leader election, so only one replica may run.
func Run(ctx context.Context, config *rest.Config, health string) error {
	scheme := runtime.NewScheme()
	if err := extensionscontroller.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register the extension APIs: %w", err)
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: health,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		// Without a client cache for Secrets, the extension needs no permission to list them.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("set up the readiness check: %w", err)
	}
	if err := operatingsystemconfig.Add(mgr, operatingsystemconfig.AddArgs{
		Actuator:   actuator{},
		Predicates: operatingsystemconfig.DefaultPredicates(ctx, mgr, false),
		Types:      []string{Type},
	}); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	return mgr.Start(ctx)
}

// Type is the type of OperatingSystemConfigs that this extension handles: the name of the machine
// image in the shoot's worker pools.
const Type = "kind"

// actuator changes nothing: a kind node is complete when it starts.
type actuator struct{}

// Short names for the results of Gardener's Actuator interface.
type (
	units   = []extensionsv1alpha1.Unit
	files   = []extensionsv1alpha1.File
	inPlace = *extensionsv1alpha1.InPlaceUpdatesStatus
)

var _ operatingsystemconfig.Actuator = actuator{}

// Reconcile returns no additional units and files. A config for provisioning gets user data,
// because gardenlet waits for it, but kind nodes never run user data.
func (actuator) Reconcile(_ context.Context, _ logr.Logger, osc *extensionsv1alpha1.OperatingSystemConfig) ([]byte, units, files, inPlace, error) {
	switch osc.Spec.Purpose {
	case extensionsv1alpha1.OperatingSystemConfigPurposeProvision:
		return []byte("#!/bin/sh\n"), nil, nil, nil, nil
	case extensionsv1alpha1.OperatingSystemConfigPurposeReconcile:
		return nil, nil, nil, nil, nil
	default:
		return nil, nil, nil, nil, fmt.Errorf("operating system config %s/%s: unknown purpose %q", osc.Namespace, osc.Name, osc.Spec.Purpose)
	}
}

// Restore calls Reconcile, since there is no state.
func (a actuator) Restore(ctx context.Context, log logr.Logger, osc *extensionsv1alpha1.OperatingSystemConfig) ([]byte, units, files, inPlace, error) {
	return a.Reconcile(ctx, log, osc)
}

// There is no state to delete or migrate.

func (actuator) Delete(context.Context, logr.Logger, *extensionsv1alpha1.OperatingSystemConfig) error {
	return nil
}

func (actuator) ForceDelete(context.Context, logr.Logger, *extensionsv1alpha1.OperatingSystemConfig) error {
	return nil
}

func (actuator) Migrate(context.Context, logr.Logger, *extensionsv1alpha1.OperatingSystemConfig) error {
	return nil
}
