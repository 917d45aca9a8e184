package fieldbugs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/status"
)

func serviceRecreated() Bug {
	const maxHeal = 30 * time.Second
	return Bug{
		ID: "s22", Slug: "service-recreated", Title: "the cache's Service is recreated with another address",
		Reports: []string{"gardener#11864", "gardener#11010", "containerd#4861"},
		Symptom: "Pulls take minutes after the Service of the cache was recreated: nodes ask the old address for each part " +
			"of an image and wait 30 s each time.",
		Fault:       "cache/alpha recreate-service",
		Expectation: noticedExpectation + " After the next reconciliation nodes have the new address and pull through the cache.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			before, err := r.endpoint(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "cache/alpha", "recreate-service"); err != nil {
				return err
			}
			if err := r.requireNoticed(ctx); err != nil {
				return err
			}
			if err := r.Apply(ctx, TwoCaches); err != nil {
				return err
			}
			hasNew := func(address string) bool { return address != "" && address != before }
			if err := r.awaitMirrors(ctx, "alpha", maxHeal, hasNew); err != nil {
				return err
			}
			_, err = r.requireCached(ctx, "after the next reconciliation nodes pull through the cache")
			return err
		},
	}
}

// endpoint returns the first mirror of an upstream on a worker.
func (r *Rig) endpoint(ctx context.Context, upstream string) (string, error) {
	status, err := r.Shoot(ctx)
	if err != nil {
		return "", err
	}
	for _, node := range status.Nodes {
		if address := firstHost(node, host(upstream)); address != "" {
			return address, nil
		}
	}
	return "", fmt.Errorf("no node has a mirror of %s", upstream)
}

// awaitMirrors waits until the function fits is true for an upstream's first mirror on each worker.
func (r *Rig) awaitMirrors(ctx context.Context, upstream string, bound time.Duration, fits func(address string) bool) error {
	return r.Await(ctx, "all workers have the wanted mirror of "+upstream, bound, func(ctx context.Context) (bool, string, error) {
		status, err := r.Shoot(ctx)
		if err != nil {
			return false, "", err
		}
		ok, state := mirrorsFit(status.Nodes, upstream, fits)
		return ok, state, nil
	})
}

func hasMirror(address string) bool { return address != "" }

// mirrorsFit reports whether there are workers and fits is true for the first mirror of each.
func mirrorsFit(nodes []status.Node, upstream string, fits func(address string) bool) (ok bool, state string) {
	var seen []string
	ok = true
	for _, node := range nodes {
		if strings.HasSuffix(node.Name, "control-plane") {
			continue
		}
		address := firstHost(node, host(upstream))
		ok = ok && fits(address)
		seen = append(seen, node.Name+": "+address)
	}
	return ok && len(seen) > 0, strings.Join(seen, ", ")
}
