package osextension

import (
	"context"
	"fmt"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/operatingsystemconfig"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// HealthPort is the port on which /readyz is served.
const HealthPort = 8081

// Run reconciles the seed's OperatingSystemConfigs until ctx ends. It does no leader election, so
// only one replica may run.
func Run(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := extensionscontroller.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register the extension APIs: %w", err)
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: fmt.Sprintf(":%d", HealthPort),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		// Without a cache the extension needs no permission to list Secrets, which it gets by name only.
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
