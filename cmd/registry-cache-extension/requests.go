package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
)

// requests counts the requests to all shoots as requests to one host. Otherwise
// rest_client_requests_total would contain series for each shoot, which are never removed.
type requests struct {
	metrics.ResultMetric
	seed string
}

// Increment implements metrics.ResultMetric.
func (r requests) Increment(ctx context.Context, code, method, host string) {
	if host != r.seed {
		host = "shoots"
	}
	r.ResultMetric.Increment(ctx, code, method, host)
}

// countRequests makes client-go use the type requests. Call it before any client is in use.
func countRequests(seed *rest.Config) error {
	url, _, err := rest.DefaultServerUrlFor(seed)
	if err != nil {
		return fmt.Errorf("parse the address of the seed: %w", err)
	}
	metrics.RequestResult = requests{metrics.RequestResult, url.Host}
	return nil
}
