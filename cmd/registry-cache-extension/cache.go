package main

import (
	"fmt"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions returns the options of the manager's cache, which keeps only the Shoot of each
// Cluster. There is one Cluster per shoot of the seed. The Cluster's CloudProfile of 50 to 200 KiB
// is not used, but the extension library would decode it with each read.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&extensionsv1alpha1.Cluster{}: {Transform: keepShoot}},
	}
}

// keepShoot removes everything from a Cluster except its Shoot.
func keepShoot(object any) (any, error) {
	if cluster, ok := object.(*extensionsv1alpha1.Cluster); ok {
		cluster.ManagedFields = nil
		cluster.Spec.CloudProfile = runtime.RawExtension{}
		cluster.Spec.Seed = nil
	}
	return object, nil
}

// requestLimits limits the requests to the API server of the seed. With client-go's default of 5
// per second, hundreds of Shoots would wait for each other.
type requestLimits struct {
	qps   float32
	burst int
}

// AddFlags implements the extension library's Option. The current values are the defaults.
func (l *requestLimits) AddFlags(flags *pflag.FlagSet) {
	flags.Float32Var(&l.qps, "kube-api-qps", l.qps, "Maximum requests per second to the API server of the seed.")
	flags.IntVar(&l.burst, "kube-api-burst", l.burst, "Maximum burst of requests to the API server of the seed.")
}

// Complete implements the extension library's Option.
func (l *requestLimits) Complete() error {
	if l.qps <= 0 || l.burst <= 0 {
		return fmt.Errorf("--kube-api-qps is %g and --kube-api-burst is %d, both must be positive", l.qps, l.burst)
	}
	return nil
}

// applyTo returns a copy of the config with the limits.
func (l *requestLimits) applyTo(config *rest.Config) *rest.Config {
	limited := rest.CopyConfig(config)
	limited.QPS, limited.Burst = l.qps, l.burst
	return limited
}
