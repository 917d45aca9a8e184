package cachetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/status"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestMissingMirrors(t *testing.T) {
	const alpha, beta = "http://10.96.0.1:5000", "http://10.96.0.2:5000"
	node := func(name string, endpoints ...string) status.Node {
		report := &nodeReport{}
		for _, endpoint := range endpoints {
			report.Mirrors = append(report.Mirrors, nodeconfig.HostConfig{Hosts: []string{endpoint}})
		}
		return status.Node{Name: name, Report: report}
	}
	both := []registryMapping{{Upstream: "alpha", Endpoint: alpha}, {Upstream: "beta", Endpoint: beta}}
	for name, test := range map[string]struct {
		registries []registryMapping
		nodes      []status.Node
		want       []string
	}{
		"no caches":              {nodes: []status.Node{node("worker")}},
		"no workers":             {registries: both, nodes: []status.Node{node("x-control-plane")}},
		"all have all":           {registries: both, nodes: []status.Node{node("x-control-plane"), node("worker", beta, alpha)}},
		"one lacks a mirror":     {registries: both, nodes: []status.Node{node("worker", alpha, beta), node("worker2", alpha)}, want: []string{"worker2 does not ask " + beta + " for beta"}},
		"one has an old address": {registries: both[:1], nodes: []status.Node{node("worker", beta)}, want: []string{"worker does not ask " + alpha + " for alpha"}},
		"no worker has it":       {registries: both[:1], nodes: []status.Node{node("b"), node("a")}, want: []string{"a does not ask " + alpha + " for alpha", "b does not ask " + alpha + " for alpha"}},
	} {
		t.Run(name, func(t *testing.T) {
			configs := []status.OperatingSystemConfig{{Purpose: "provision"}, {Purpose: "reconcile", Report: &configReport{Registries: test.registries}}}
			got := missingMirrors(&status.Shoot{OperatingSystemConfigs: configs, Nodes: test.nodes})
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestPendingMirrors: if the seed does not answer, it is unknown which mirrors are missing.
func TestPendingMirrors(t *testing.T) {
	const refused = "seed: connection refused"
	for name, test := range map[string]struct {
		status *status.Shoot
		err    error
		want   []string
	}{
		"everything was read":         {status: &status.Shoot{Stage: "present"}},
		"no answer from the seed":     {status: &status.Shoot{Problems: []string{refused, "shoot: EOF"}}, want: []string{refused}},
		"no answer about the configs": {status: &status.Shoot{Stage: "present", Problems: []string{refused}}, want: []string{refused}},
		"no answer from the shoot":    {status: &status.Shoot{Stage: "present", Problems: []string{"shoot: EOF"}}}, // nodes are read without the API server
		"no status":                   {err: errors.New("the testbed is down"), want: []string{"the testbed is down"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pendingMirrors(test.status, test.err); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPollPending(t *testing.T) {
	hang := func(ctx context.Context) []string {
		<-ctx.Done()
		return []string{ctx.Err().Error()}
	}
	found := func(left ...string) func(context.Context) []string {
		return func(context.Context) []string { return left }
	}
	for name, test := range map[string]struct {
		calls []func(context.Context) []string // the last one repeats
		want  []string
		took  time.Duration
	}{
		"at once":              {calls: []func(context.Context) []string{found()}},
		"it answers in time":   {calls: []func(context.Context) []string{found("seed: refused"), found()}, took: time.Second},
		"it never answers":     {calls: []func(context.Context) []string{found("seed: EOF"), found("seed: refused")}, want: []string{"seed: refused"}, took: mirrorsTimeout},
		"the last call hangs":  {calls: []func(context.Context) []string{found("seed: refused"), hang}, want: []string{"seed: refused"}, took: mirrorsTimeout},
		"the first call hangs": {calls: []func(context.Context) []string{hang}, want: []string{"context deadline exceeded"}, took: mirrorsTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), 0
				left := pollPending(t.Context(), func(ctx context.Context) []string {
					calls++
					return test.calls[min(calls, len(test.calls))-1](ctx)
				})
				if took := time.Since(start); !slices.Equal(left, test.want) || took != test.took {
					t.Errorf("left %q after %s, want %q after %s", left, took, test.want, test.took)
				}
			})
		})
	}
}
