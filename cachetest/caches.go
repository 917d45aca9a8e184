package cachetest

import (
	"context"
	"fmt"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// ServiceOf returns the Service of the cache for the upstream host.
func ServiceOf(ctx context.Context, t *kind.Testbed, host string) (*corev1.Service, error) {
	services, _, err := List(ctx, t.Shoot)
	if err != nil {
		return nil, err
	}
	for _, service := range services {
		if service.Annotations[v1alpha3.AnnotationUpstream] == host {
			return &service, nil
		}
	}
	return nil, fmt.Errorf("no Service found for the cache of %s", host)
}

// Addresses returns the host:port addresses of the cache for the upstream host.
func Addresses(services []corev1.Service, host string) []string {
	addresses := []string{}
	for _, service := range services {
		if service.Annotations[v1alpha3.AnnotationUpstream] != host || len(service.Spec.Ports) == 0 {
			continue // of another upstream, or not created by the extension
		}
		for _, ip := range service.Spec.ClusterIPs {
			addresses = append(addresses, net.JoinHostPort(ip, strconv.Itoa(int(service.Spec.Ports[0].Port))))
		}
	}
	return addresses
}

// List returns the Services of the caches, and all StatefulSets in kube-system.
func List(ctx context.Context, shoot *cluster.Cluster) ([]corev1.Service, []appsv1.StatefulSet, error) {
	api, err := client.New(shoot.RESTConfig(), client.Options{})
	if err != nil {
		return nil, nil, err
	}
	inKubeSystem := client.InNamespace(metav1.NamespaceSystem)
	services, sets := &corev1.ServiceList{}, &appsv1.StatefulSetList{}
	if err := api.List(ctx, services, inKubeSystem, client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, nil, fmt.Errorf("list the Services of the caches: %w", err)
	}
	if err := api.List(ctx, sets, inKubeSystem); err != nil {
		return nil, nil, fmt.Errorf("list the StatefulSets of the caches: %w", err)
	}
	return services.Items, sets.Items, nil
}
