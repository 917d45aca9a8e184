package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
)

// Names has upstreams whose names are hard.
const Names = "e2e/fieldbugs/shoots/names.yaml"

// hardNames are those of Names. No host of these names exists: what comes by one of them comes through its cache, which fetches from
// gamma.
var hardNames = []string{
	"a.b-c.upstream.test", "a-b.c.upstream.test", "a-name-with-sixty-characters-is-quite-long.sub.upstream.test",
	"port.upstream.test:5000", "port-5000.upstream.test", "[2001:db8::7]:5000",
}

// names are upstreams whose names collide, are long, have a port or are addresses.
func names() Bug {
	const reconciled, heard = 45 * time.Second, time.Minute // eight pods begin at once
	return Bug{
		ID: "s23", Title: "upstreams whose names are alike, long, with a port, or addresses",
		Reports: []string{
			"gardener-extension-registry-cache#45", "gardener-extension-registry-cache#129",
			"gardener-extension-registry-cache#339", "gardener-extension-registry-cache#591",
		},
		Symptom: "Two upstreams get objects of one name, and reconciliation never ends; or a pod cannot be made, for its name is too long.",
		Fault:   "none: the Shoot names a.b-c and a-b.c, x:5000 and x-5000, a name of 60 characters, an IPv6 address with a port",
		Expectation: "All of them have a cache of their own, with an address of its own, and an image that nobody had comes by each name. Then nothing " +
			"is written any more.",
		Lane: Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			start := time.Now()
			if err := r.Apply(ctx, Names); err != nil {
				return err
			}
			if err := r.Within("the Shoot is reconciled", time.Since(start), reconciled); err != nil {
				return err
			}
			var before string
			err := r.Soon(ctx, "all nodes ask each at an address of its own", heard, func(ctx context.Context) (bool, string, error) {
				status, err := r.Shoot(ctx)
				if err != nil {
					return false, "", err
				}
				missing, err := missingNames(status, hardNames)
				before = lastOperation(status)
				return len(missing) == 0, strings.Join(missing, "; "), err
			})
			if err != nil {
				return err
			}
			written, err := r.generations(ctx)
			if err != nil {
				return err
			}
			if err := r.pullByName(ctx); err != nil {
				return err
			}
			return r.requireRest(ctx, before, written)
		},
	}
}

// pullByName pulls by each name an image that no cache has.
func (r *Rig) pullByName(ctx context.Context) error {
	for _, upstream := range hardNames {
		img, err := r.Push(ctx, "gamma")
		if err != nil {
			return err
		}
		reference := upstream + strings.TrimPrefix(img.Reference, host("gamma"))
		err = r.Soon(ctx, "an image comes by the name "+upstream, soon, func(ctx context.Context) (bool, string, error) {
			_, err := r.Exec(ctx, "worker", "crictl", "pull", reference)
			var failed *CommandError
			if err != nil && !errors.As(err, &failed) {
				return false, "", err
			}
			return err == nil, reason(err), nil // the cache may have started a moment ago
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// missingNames says which upstream has no cache, or one whose address another one has, and which worker does not ask one.
func missingNames(status kind.ShootStatus, upstreams []string) ([]string, error) {
	missing, err := missingMirrors(status)
	if err != nil {
		return nil, err
	}
	caches, err := caches(status)
	at := map[string]string{}
	for _, cache := range caches {
		if other, taken := at[cache.Endpoint]; taken {
			missing = append(missing, fmt.Sprintf("%s and %s are both at %s", other, cache.Upstream, cache.Endpoint))
		}
		at[cache.Endpoint] = cache.Upstream
	}
	for _, upstream := range upstreams {
		if !slices.ContainsFunc(caches, func(c cache) bool { return c.Upstream == upstream && c.Endpoint != "" }) {
			missing = append(missing, upstream+" has no cache")
		}
	}
	return missing, err
}

// lastOperation is what the Extension's status says of its last reconciliation.
func lastOperation(status kind.ShootStatus) string {
	for _, extension := range status.Extensions {
		if extension.Type == "registry-cache" && extension.LastOperation != nil {
			return fmt.Sprintf("%s %s at %s", extension.LastOperation.Type, extension.LastOperation.State, extension.LastOperation.Time.UTC().Format(time.TimeOnly))
		}
	}
	return "none"
}

// generations tells of all StatefulSets of caches how often somebody has changed what is wanted of them.
func (r *Rig) generations(ctx context.Context) (string, error) {
	return r.Kubectl(ctx, "shoot", "get", "--namespace=kube-system", "statefulsets", "--selector=upstream-host",
		"--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.generation}{\"\\n\"}{end}")
}

// requireRest requires that nothing was reconciled or written since then: where two caches take each other's objects, one change
// follows another for ever.
func (r *Rig) requireRest(ctx context.Context, operation, written string) error {
	status, err := r.Shoot(ctx)
	if err != nil {
		return err
	}
	now, err := r.generations(ctx)
	if err != nil {
		return err
	}
	sets := strings.Count(now, "\n")
	rests := lastOperation(status) == operation && strings.Contains(operation, "Succeeded") && now == written
	return r.Require("then nothing is written any more", rests && sets > len(hardNames),
		"%s, before %s; %d StatefulSets, as before: %t", lastOperation(status), operation, sets, now == written)
}
