package controller

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func serviceOf(upstream, ip string, changes ...func(*corev1.Service)) corev1.Service {
	service := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:        v1alpha3.Name(upstream),
			Labels:      map[string]string{v1alpha3.LabelUpstreamHost: v1alpha3.HostLabel(upstream)},
			Annotations: map[string]string{v1alpha3.AnnotationUpstream: upstream},
		},
		Spec: corev1.ServiceSpec{ClusterIP: ip},
	}
	for _, change := range changes {
		change(&service)
	}
	return service
}

func TestMatchServices(t *testing.T) {
	terminating := func(s *corev1.Service) { now := metav1.Now(); s.DeletionTimestamp = &now }
	unrelated := func(s *corev1.Service) { s.Name, s.Annotations = "mirror", nil }
	impostor := func(s *corev1.Service) { s.Name = "mirror" }
	one, two := serviceOf(alpha, "10.0.0.1"), serviceOf(beta, "10.0.0.2")
	const endpointOne, endpointTwo = "http://10.0.0.1:5000", "http://10.0.0.2:5000"
	both := []string{endpointOne, endpointTwo}
	for name, test := range map[string]struct {
		services  []corev1.Service
		endpoints []string
		missing   []string
	}{
		"none":                     {nil, nil, []string{alpha, beta}},
		"both":                     {[]corev1.Service{two, one}, both, nil},
		"one of two":               {[]corev1.Service{two}, []string{endpointTwo}, []string{alpha}},
		"unrelated Service":        {[]corev1.Service{serviceOf(alpha, "10.0.0.9", unrelated), one, two}, both, nil},
		"only an impostor":         {[]corev1.Service{serviceOf(alpha, "10.0.0.9", impostor), two}, []string{endpointTwo}, []string{alpha}},
		"Service of removed cache": {[]corev1.Service{serviceOf("gamma.upstream.test", "10.0.0.3"), one, two}, both, nil},
		"terminating":              {[]corev1.Service{serviceOf(alpha, "10.0.0.1", terminating), two}, []string{endpointTwo}, []string{alpha}},
		"no cluster IP":            {[]corev1.Service{serviceOf(alpha, ""), serviceOf(beta, corev1.ClusterIPNone)}, nil, []string{alpha, beta}},
		"IPv6":                     {[]corev1.Service{serviceOf(alpha, "2a05::1"), two}, []string{"http://[2a05::1]:5000", endpointTwo}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: alpha}, {Upstream: beta}}}
			v1alpha3.SetDefaults(config)
			found, missing := matchServices(test.services, &target{config: config})
			var endpoints []string
			for _, status := range found {
				endpoints = append(endpoints, status.Endpoint)
			}
			if !slices.Equal(endpoints, test.endpoints) || !slices.Equal(missing, test.missing) {
				t.Errorf("endpoints %v, missing %v, want %v, %v", endpoints, missing, test.endpoints, test.missing)
			}
		})
	}
}
