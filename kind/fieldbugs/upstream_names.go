package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

// hardNames are the difficult upstreams in the manifest Names. Their hosts do not exist: images of
// these upstreams can only come through the caches, which fetch from gamma.
var hardNames = []string{
	"a.b-c.upstream.test", "a-b.c.upstream.test", "a-name-with-sixty-characters-is-quite-long.sub.upstream.test",
	"port.upstream.test:5000", "port-5000.upstream.test", "[2001:db8::7]:5000",
}

func upstreamNames() Bug {
	const reconciled, configured = 45 * time.Second, time.Minute // eight pods start at once
	return Bug{
		ID: "s23", Slug: "upstream-names", Title: "upstreams with similar names, long names, ports, or IP addresses",
		Reports: []string{
			"gardener-extension-registry-cache#45", "gardener-extension-registry-cache#129",
			"gardener-extension-registry-cache#339", "gardener-extension-registry-cache#591",
		},
		Symptom: "Two upstreams get objects with the same name and reconciliation never ends, or a pod cannot be created " +
			"because its name is too long.",
		Fault: "none: the Shoot names a.b-c and a-b.c, x:5000 and x-5000, a name of 60 characters, an IPv6 address with a port",
		Expectation: "Each upstream has its own cache and endpoint, which serves a new image by its name. After that, no object " +
			"is written again.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			start := time.Now()
			if err := r.Apply(ctx, Names); err != nil {
				return err
			}
			if err := r.Within("the Shoot is reconciled", time.Since(start), reconciled); err != nil {
				return err
			}
			err := r.Soon(ctx, "all nodes use a different address for each upstream", configured,
				r.withoutProblems(func(shoot status.Shoot) ([]string, error) { return missingNames(shoot, hardNames) }))
			if err != nil {
				return err
			}
			before, err := r.objectVersions(ctx)
			if err != nil {
				return err
			}
			if err := r.pullByName(ctx); err != nil {
				return err
			}
			return r.requireRest(ctx, before)
		},
	}
}

// pullByName pulls a new image by each of the names, so that no cache has it.
func (r *Rig) pullByName(ctx context.Context) error {
	for _, upstream := range hardNames {
		img, err := r.Push(ctx, "gamma")
		if err != nil {
			return err
		}
		reference := upstream + strings.TrimPrefix(img.Reference, host("gamma"))
		err = r.Soon(ctx, "an image is pulled by the name "+upstream, restartedBound, func(ctx context.Context) (bool, string, error) {
			_, err := r.Exec(ctx, "worker", "crictl", "pull", reference)
			var failed *CommandError
			if err != nil && !errors.As(err, &failed) {
				return false, "", err
			}
			return err == nil, reason(err), nil // the cache may not be ready yet
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// missingNames returns a problem for each upstream without a cache, each pair of caches with the
// same endpoint, and each worker without the mirror of a cache.
func missingNames(status status.Shoot, upstreams []string) ([]string, error) {
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
		if !slices.ContainsFunc(caches, func(c v1alpha3.RegistryCacheStatus) bool { return c.Upstream == upstream && c.Endpoint != "" }) {
			missing = append(missing, upstream+" has no cache")
		}
	}
	return missing, err
}

// objectVersions returns, for each object of the caches, a version that changes with the spec: the
// resource version for Services, which have no status here, and the generation for other objects.
func (r *Rig) objectVersions(ctx context.Context) (string, error) {
	var all strings.Builder
	for _, look := range []struct{ resources, version string }{{"services", "resourceVersion"}, {"statefulsets,networkpolicies", "generation"}} {
		out, err := r.Kubectl(ctx, "shoot", "get", "--namespace=kube-system", look.resources, "--selector=upstream-host",
			"--output=jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata."+look.version+"}{\"\\n\"}{end}")
		if err != nil {
			return "", err
		}
		all.WriteString(out)
	}
	return all.String(), nil
}

// requireRest requires that the versions of the objects have not changed: no object was written.
// Two caches that share an object would overwrite it forever.
func (r *Rig) requireRest(ctx context.Context, before string) error {
	now, err := r.objectVersions(ctx)
	if err != nil {
		return err
	}
	services, sets := strings.Count(now, "Service "), strings.Count(now, "StatefulSet ")
	return r.Require("after that, no Service, StatefulSet or NetworkPolicy is written",
		now == before && services > len(hardNames) && sets > len(hardNames), "%d Services, %d StatefulSets%s", services, sets, difference(before, now))
}

// difference returns the lines that are in only one of the texts.
func difference(before, now string) string {
	var all strings.Builder
	for _, side := range []struct{ when, text, other string }{{"before", before, now}, {"now", now, before}} {
		for line := range strings.Lines(side.text) {
			if !strings.Contains("\n"+side.other, "\n"+line) {
				all.WriteString("; " + side.when + " " + strings.TrimSpace(line))
			}
		}
	}
	return all.String()
}
