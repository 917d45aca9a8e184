package fieldbugs

import (
	"context"
	"strings"
	"time"
)

// Names has upstreams whose names are hard.
const Names = "e2e/fieldbugs/shoots/names.yaml"

// names are upstreams whose names collide, are long, have a port or are addresses.
func names() Bug {
	const bound = time.Minute
	return Bug{
		ID: "s23", Title: "upstreams whose names are alike, long, with a port, or addresses",
		Reports: []string{
			"gardener-extension-registry-cache#45", "gardener-extension-registry-cache#129",
			"gardener-extension-registry-cache#339", "gardener-extension-registry-cache#591",
		},
		Symptom:     "Two upstreams get objects of one name, and reconciliation never ends; or a pod cannot be made, for its name is too long.",
		Fault:       "none: the Shoot names a.b-c and a-b.c, x:5000 and x-5000, a name of 60 characters, an IPv6 address",
		Expectation: "All of them have a cache of their own, with an address of its own, and images come by each name.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			start := time.Now()
			if err := r.Apply(ctx, Names); err != nil {
				return err
			}
			if err := r.Within("the Shoot is reconciled", time.Since(start), bound); err != nil {
				return err
			}
			wanted := map[string]bool{
				host("alpha"): true, host("beta"): true, "a.b-c.upstream.test": true, "a-b.c.upstream.test": true,
				"a-name-with-sixty-characters-is-quite-long.sub.upstream.test": true,
				"port.upstream.test:5000":                                      true, "port-5000.upstream.test": true, "[2001:db8::7]:5000": true,
			}
			err := r.Await(ctx, "worker has a mirror of each, and no two the same", bound, func(ctx context.Context) (bool, string, error) {
				status, err := r.Shoot(ctx)
				if err != nil {
					return false, "", err
				}
				missing, addresses, state := len(wanted), map[string]bool{}, ""
				for _, node := range status.Nodes {
					if shortNode(node.Name) != "worker" {
						continue
					}
					for _, mirror := range node.Mirrors {
						state += mirror.Upstream + " "
						if wanted[mirror.Upstream] && len(mirror.Hosts) > 0 && !addresses[mirror.Hosts[0]] {
							addresses[mirror.Hosts[0]] = true
							missing--
						}
					}
				}
				return missing == 0, state, nil
			})
			if err := r.Require("each has an address of its own", err == nil, "%v", err); err != nil {
				return err
			}
			return r.pullByName(ctx, "a.b-c.upstream.test", "a-b.c.upstream.test", "a-name-with-sixty-characters-is-quite-long.sub.upstream.test",
				"port.upstream.test:5000", "port-5000.upstream.test")
		},
	}
}

// pullByName pulls an image of gamma, which the caches of all these upstreams fetch from, by each name. No such host exists: it can
// come through the cache only.
func (r *Rig) pullByName(ctx context.Context, upstreams ...string) error {
	img, err := r.Push(ctx, "gamma")
	if err != nil {
		return err
	}
	for _, upstream := range upstreams {
		reference := upstream + strings.TrimPrefix(img.Reference, host("gamma"))
		err := r.Await(ctx, reference+" is pulled", settled, func(ctx context.Context) (bool, string, error) {
			_, err := r.Exec(ctx, "worker", "crictl", "pull", reference)
			return err == nil, reason(err), nil // the cache may have started a moment ago
		})
		if err := r.Require("an image comes by the name "+upstream, err == nil, "%v", err); err != nil {
			return err
		}
	}
	return nil
}
