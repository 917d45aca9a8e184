//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

// ecrAccess returns a new access key for Amazon ECR, and the lifetime of the tokens that it can
// request.
func ecrAccess() server.ECR {
	a := newAccount()
	return server.ECR{AccessKeyID: "AKIA" + strings.ToUpper(a.username[6:]), SecretAccessKey: a.password, Life: ecrLife}
}

// Hosts of the token servers of the private upstream, see registryprofile.Sibling and Foreign.
const (
	siblingRealm = "site." + rig.Private
	foreignRealm = "private.elsewhere.test"
)

// registriesRealm proves that a cache sends its credentials to a token server in the domain of its
// upstream, but not to one in another domain, even if the upstream names it (CVE-2026-33540).
func registriesRealm() rig.Scenario {
	robot := newAccount()
	bearer := robot.in(registryprofile.Profile{Challenge: "bearer"})
	realm := func(site string, anonymous bool) registry {
		r := registry{name: "a registry with a token server at site " + site, host: rig.Private, profile: bearer}
		r.profile.Realms, r.profile.Anonymous = []string{site}, anonymous
		return r
	}
	return rig.New("registries-realm",
		rig.Prove("a private upstream is cached", func(ctx context.Context, p *rig.Run) { cachedWithAccount(ctx, p, robot) }),

		rig.Prove("a token server in the domain of the upstream gets the credentials", func(ctx context.Context, p *rig.Run) {
			r := realm(registryprofile.Sibling, false)
			img := p.Push(ctx, r.host)
			r.begin(ctx, p)
			p.TimedPull(ctx, p.Worker(0), img)
			r.proveOnce(ctx, p, img)
			if len(tokens(ctx, p, siblingRealm).Filter(authorized)) == 0 {
				p.Fatalf("no credentials reached %s, so the next step proves nothing", siblingRealm)
			}
		}),

		rig.Prove("a token server of another domain gets no credentials", func(ctx context.Context, p *rig.Run) {
			r := realm(registryprofile.Foreign, false)
			img := p.Push(ctx, r.host)
			r.begin(ctx, p)
			restartCache(ctx, p, r.host) // the cache might remember the other token server
			status, answer := manifestFrom(ctx, p, fmt.Sprintf("%s/v2/%s/manifests/%s", p.Endpoints(ctx)[r.host], img.Repository, img.Tag))
			asked := tokens(ctx, p, foreignRealm)
			given := asked.Filter(func(r accesslog.Record) bool { return r.Authorization || r.Status == http.StatusOK })
			switch {
			case len(given) > 0:
				p.Fatalf("%s got the credentials: %s %s, status %d", foreignRealm, given[0].Method, given[0].Path, given[0].Status)
			case len(asked) == 0:
				p.Fatalf("%s was not asked, so this proves nothing", foreignRealm)
			case status == http.StatusOK:
				p.Fatalf("the cache answers 200 without a token: %s", answer)
			}
		}),

		rig.Prove("an anonymous token of another domain is used", func(ctx context.Context, p *rig.Run) {
			r := realm(registryprofile.Foreign, true)
			clearFaults(ctx, p)
			awaitFetches(ctx, p, r.host)
			img := p.Push(ctx, r.host)
			r.begin(ctx, p)
			p.TimedPull(ctx, p.Worker(0), img)
			r.proveOnce(ctx, p, img)
			all := tokens(ctx, p, foreignRealm)
			if leaked := all.Filter(authorized); len(leaked) > 0 {
				p.Fatalf("%s got the credentials: %s %s", foreignRealm, leaked[0].Method, leaked[0].Path)
			}
			p.Evidence("%d requests for tokens at %s, all without credentials", len(all), foreignRealm)
		}),
	)
}

// tokens returns the requests of caches to the token server at the host.
func tokens(ctx context.Context, p *rig.Run, host string) accesslog.Records {
	p.Helper()
	return logOf(ctx, p, rig.Private).By(accesslog.AskerCache).Filter(func(r accesslog.Record) bool {
		return r.Host == host && r.Path == registryprofile.TokenPath
	})
}

// restartCache deletes the pod of a cache, and waits until the next one serves every worker. It
// returns how long the next pod took to be ready.
func restartCache(ctx context.Context, p *rig.Run, host string) (ready time.Duration) {
	p.Helper()
	pod, start := podOf(ctx, p, host), time.Now()
	p.Check(p.Session.Shoot.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	p.Await(ctx, "another pod is ready", maxRestart, func(ctx context.Context) (bool, string, error) {
		now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		err := p.Session.Shoot.Get(ctx, client.ObjectKeyFromObject(now), now)
		return now.UID != pod.UID && health.IsPodReady(now), rig.PodState(now), client.IgnoreNotFound(err)
	})
	ready = time.Since(start)
	p.AwaitMirrors(ctx, rig.Alpha, rig.Beta, host)
	return ready
}

// registriesRefused proves that a cache does not treat a refusal by the upstream as an outage:
// nodes receive the refusal, not the manifest that the cache has stored.
func registriesRefused() rig.Scenario {
	var img rig.Pushed
	return rig.New("registries-refused",
		rig.Prove("an image is stored", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			img = p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
		}),

		rig.Prove("a tag that the upstream refuses is refused", func(ctx context.Context, p *rig.Run) {
			url := fmt.Sprintf("%s/v2/%s/manifests/%s", p.Endpoints(ctx)[rig.Alpha], img.Repository, img.Tag)
			for _, status := range []int{http.StatusForbidden, http.StatusPreconditionFailed} {
				refuses := registryprofile.Profile{Answers: []registryprofile.Answer{{Path: "/manifests/" + img.Tag + "$", Status: status, Document: "DENIED"}}}
				registry{name: "a registry that refuses a tag", host: rig.Alpha, profile: refuses}.begin(ctx, p)
				// For a second after the upstream has confirmed a tag, the cache serves it without asking
				// again.
				p.Await(ctx, fmt.Sprintf("the cache answers %d, with the words of the upstream", status), 10*time.Second,
					func(ctx context.Context) (bool, string, error) {
						got, answer := manifestFrom(ctx, p, url)
						ok := got == status && strings.Contains(answer, "DENIED") && !strings.Contains(strings.ToLower(answer), "\nwarning:")
						return ok, answer, nil
					})
			}
			if _, err := rig.TimedPull(ctx, p.Worker(1), img); err == nil {
				p.Fatalf("a node pulled what the upstream refuses")
			} else if !strings.Contains(err.Error(), "412") {
				p.Fatalf("the error of the pull does not contain the upstream's status: %v", err)
			}
			p.Evidence("the cache answers 403 and 412 when the upstream does; the pull fails with 412")
		}),

		rig.Prove("the tag is served again when the upstream no longer refuses it", func(ctx context.Context, p *rig.Run) {
			clearFaults(ctx, p)
			awaitFetches(ctx, p, rig.Alpha)
			known := len(objects(ctx, p, img, "")) // the earlier requests, some by the node whose pull was refused
			p.TimedPull(ctx, p.Worker(1), img)
			if nodes := objects(ctx, p, img, "")[known:].By(accesslog.AskerNode); len(nodes) > 0 {
				p.Fatalf("a node went past the cache: %s %s, status %d", nodes[0].Method, nodes[0].Path, nodes[0].Status)
			}
		}),
	)
}

// rangeScript requests three quarters of a blob from a cache, and then the whole blob, and compares
// both with the bytes of the upstream. For these it uses the testbed's user agent, whose requests
// no fault affects. For each answer of the cache it prints the status, the exit code of curl, and
// whether the bytes are the same.
const rangeScript = `
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
curl --silent --fail --user-agent registry-cache-testbed/1 --output "$folder/right" "$1"
size=$(stat --format %s "$folder/right")
for last in $((size * 3 / 4)) $((size - 1)); do
  ended=0 range=(--range "0-$last")
  if [ "$last" = $((size - 1)) ]; then range=(); fi
  status=$(curl --silent --insecure --max-time 30 "${range[@]}" --output "$folder/part" --write-out '%{http_code}' "$2") || ended=$?
  same=different
  if head --bytes $((last + 1)) "$folder/right" | cmp --silent - "$folder/part"; then same=same; fi
  rm -f "$folder/part"
  echo "$status $ended $same"
done`

// registriesRange proves that no complete answer of a cache contains damaged bytes, neither for a
// range nor for a whole blob.
func registriesRange() rig.Scenario {
	var img rig.Pushed
	damaged := registry{name: "a registry that damages blobs", host: rig.Alpha, profile: registryprofile.Profile{
		BodyOf: registryprofile.Blobs, Damaged: true,
	}}
	ranges := func(ctx context.Context, p *rig.Run, digest string) []string {
		p.Helper()
		path := "/v2/" + img.Repository + "/blobs/" + digest
		out, err := p.Worker(0).Script(ctx, rangeScript, "http://"+rig.Alpha+path, p.Endpoints(ctx)[rig.Alpha]+path)
		p.Check(err)
		answers := strings.Split(strings.TrimSpace(out), "\n")
		if len(answers) != 2 {
			p.Fatalf("the node prints %q", out)
		}
		return answers
	}
	return rig.New("registries-range",
		rig.Prove("alpha is cached, and sends damaged blobs", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			awaitFetches(ctx, p, rig.Alpha)
			img = p.Push(ctx, rig.Alpha)
			damaged.begin(ctx, p)
		}),

		rig.Prove("no complete answer is damaged", func(ctx context.Context, p *rig.Run) {
			for _, digest := range img.Blobs {
				for _, answer := range ranges(ctx, p, digest) {
					if strings.HasPrefix(answer, "2") && strings.HasSuffix(answer, " 0 different") {
						p.Fatalf("damaged bytes came as a complete answer: %s", answer)
					}
					if strings.HasSuffix(answer, " same") {
						p.Fatalf("the upstream is not damaged, so this proves nothing: %s", answer)
					}
				}
			}
			p.Evidence("%d damaged blobs: each answer was cut, or an error", len(img.Blobs))
		}),

		rig.Prove("ranges and blobs are correct when the upstream sends correct bytes", func(ctx context.Context, p *rig.Run) {
			clearFaults(ctx, p)
			awaitFetches(ctx, p, rig.Alpha)
			for _, digest := range img.Blobs {
				p.Await(ctx, "the range and the blob are correct", maxRestart, func(ctx context.Context) (bool, string, error) {
					answers := ranges(ctx, p, digest)
					return answers[0] == "206 0 same" && answers[1] == "200 0 same", strings.Join(answers, ", "), nil
				})
			}
		}),
	)
}
