package cache

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

// serviceOf returns the Service of the cache of an upstream.
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
	return nil, fmt.Errorf("there is no Service of the cache of %s", host)
}

func Addresses(services []corev1.Service, host string) []string {
	addresses := []string{}
	for _, service := range services {
		if service.Annotations[v1alpha3.AnnotationUpstream] != host || len(service.Spec.Ports) == 0 {
			continue // a foreign one may lead nowhere
		}
		for _, ip := range service.Spec.ClusterIPs {
			addresses = append(addresses, net.JoinHostPort(ip, strconv.Itoa(int(service.Spec.Ports[0].Port))))
		}
	}
	return addresses
}

func List(ctx context.Context, shoot *cluster.Cluster) ([]corev1.Service, []appsv1.StatefulSet, error) {
	api, err := client.New(shoot.RESTConfig(), client.Options{})
	if err != nil {
		return nil, nil, err
	}
	inKubeSystem := client.InNamespace(metav1.NamespaceSystem)
	services, sets := &corev1.ServiceList{}, &appsv1.StatefulSetList{}
	if err := api.List(ctx, services, inKubeSystem, client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
		return nil, nil, fmt.Errorf("list the services of the caches: %w", err)
	}
	if err := api.List(ctx, sets, inKubeSystem); err != nil {
		return nil, nil, fmt.Errorf("list the stateful sets of the caches: %w", err)
	}
	return services.Items, sets.Items, nil
}
