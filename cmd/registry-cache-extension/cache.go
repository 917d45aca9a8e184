package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// cacheOptions say what is kept of objects that are watched. A Cluster is kept for every shoot of the seed: the webhook, and
// the extension library before and after every reconciliation, read the Shoot in it. The CloudProfile, some 50 to 200 KiB and
// decoded by each of these reads, and the Seed are read by nobody.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&extensionsv1alpha1.Cluster{}: {Transform: keepShoot}},
	}
}

// keepShoot drops from a Cluster what is not about its shoot.
func keepShoot(object any) (any, error) {
	if cluster, ok := object.(*extensionsv1alpha1.Cluster); ok {
		cluster.ManagedFields = nil
		cluster.Spec.CloudProfile = runtime.RawExtension{}
		cluster.Spec.Seed = nil
	}
	return object, nil
}
