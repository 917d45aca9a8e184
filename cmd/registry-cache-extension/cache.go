package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// cacheOptions reduces the cached objects. There is a Cluster for every shoot of the seed. The
// webhook reads the Shoot in it, and so does the extension library before and after every
// reconciliation. Nobody reads the Seed and the CloudProfile, which has 50 to 200 KiB and would be
// decoded by each of these reads.
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
