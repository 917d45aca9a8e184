package cache

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// LabelUpstreamHost is the label of every object of a cache; its value is HostLabel of the upstream.
	LabelUpstreamHost = "upstream-host"
	// AnnotationUpstream is the annotation of the Service that holds the upstream as the user wrote it.
	AnnotationUpstream = "upstream"
	// AnnotationRemoteURL is the annotation of the Service that holds the URL the cache fetches from.
	AnnotationRemoteURL = "remote-url"

	// Port is where a cache serves the registry API, on the Service as on the pod.
	Port int32 = 5000
	// DebugPort is where a cache serves health and metrics, on the pod only.
	DebugPort int32 = 5001

	labelApp = "app"
)

// Objects returns the objects that serve one upstream in the shoot, all of them in the namespace kube-system: Secret,
// Service, StatefulSet and NetworkPolicy. The cache must have its defaults set and be valid (v1alpha3.SetDefaults and
// v1alpha3.Validate); image is the reference of the registry image.
func Objects(cache v1alpha3.RegistryCache, image string) ([]client.Object, error) {
	if cache.RemoteURL == nil || cache.Volume == nil || cache.Volume.Size == nil || cache.GarbageCollection == nil {
		return nil, fmt.Errorf("cache of upstream %q has no defaults set", cache.Upstream)
	}
	if image == "" {
		return nil, errors.New("no registry image given")
	}
	secret, err := configSecret(cache)
	if err != nil {
		return nil, err
	}
	set, err := statefulSet(cache, image, secret.Name)
	if err != nil {
		return nil, err
	}
	return []client.Object{secret, service(cache), set, networkPolicy(cache)}, nil
}

// labels are the labels of every object of the upstream, and the selector of its pod.
func labels(upstream string) map[string]string {
	return map[string]string{labelApp: v1alpha3.Name(upstream), LabelUpstreamHost: v1alpha3.HostLabel(upstream)}
}

func objectMeta(upstream string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: v1alpha3.Name(upstream), Namespace: metav1.NamespaceSystem, Labels: labels(upstream)}
}
