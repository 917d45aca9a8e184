package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
)

type counted struct{ hosts []string }

func (c *counted) Increment(_ context.Context, _, _, host string) { c.hosts = append(c.hosts, host) }

// TestRequestsToShoots: the number of series does not grow with the number of shoots.
func TestRequestsToShoots(t *testing.T) {
	original, hosts := metrics.RequestResult, &counted{}
	defer func() { metrics.RequestResult = original }()
	metrics.RequestResult = hosts
	var servers []*httptest.Server
	for range 3 {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		servers = append(servers, server)
	}
	if err := countRequests(&rest.Config{Host: servers[0].URL}); err != nil {
		t.Fatal(err)
	}
	for _, server := range servers {
		_, _ = kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}).CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	}
	if want := []string{servers[0].Listener.Addr().String(), "shoots", "shoots"}; !slices.Equal(hosts.hosts, want) {
		t.Errorf("counted as requests to %q, want %q", hosts.hosts, want)
	}
}
