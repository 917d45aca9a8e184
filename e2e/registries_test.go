//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// registriesTimeout bounds the scenario registries: each profile takes about 15 s.
const registriesTimeout = 15 * time.Minute

// account is the user name and the password of a private upstream, in a profile and in a Secret.
type account struct{ username, password string }

func newAccount() account { return account{"robot-" + rand.Text()[:6], rand.Text()} }

// in returns the profile with the account.
func (a account) in(profile registryprofile.Profile) registryprofile.Profile {
	profile.Username, profile.Password = a.username, a.password
	return profile
}

// registries proves, for each known registry except ECR, that these images come through a cache:
// new ones, stored ones, new ones after all tokens have expired, and stored ones during an outage.
// The profiles alternate between alpha and beta, so that one cache can recover from its outage
// while the other is tested.
func registries() rig.Scenario {
	robot := newAccount()
	steps := []rig.Step{rig.Prove("alpha, beta and a private upstream are cached", func(ctx context.Context, p *rig.Run) {
		cachedWithAccount(ctx, p, robot)
	})}
	hosts := []string{rig.Alpha, rig.Beta}
	for i, name := range slices.Sorted(maps.Keys(registryprofile.Profiles)) {
		profile := registryprofile.Profiles[name]
		r := registry{name: name, host: hosts[i%len(hosts)], profile: profile}
		switch {
		case report.SellsTokens(profile):
			continue // see registriesECR
		case profile.Challenge == "basic":
			r.host, r.profile = rig.Private, robot.in(profile)
		}
		steps = append(steps, rig.Prove(name, func(ctx context.Context, p *rig.Run) { r.prove(ctx, p) }))
	}
	return rig.New("registries", steps...).Within(registriesTimeout)
}

// cachedWithAccount starts a private upstream, and configures caches for alpha, beta and the
// private upstream. The last cache uses the account. The upstream requires no credentials until it
// gets a profile.
func cachedWithAccount(ctx context.Context, p *rig.Run, a account) {
	p.Helper()
	p.Upstream(ctx, p.Session.Testbed.UpstreamOptions(rig.Private))
	p.Check(rig.UndoLeftovers(ctx, p))
	private := cachetest.Cache(rig.Private)
	private.SecretReferenceName = ptr.To("robot")
	refer := rig.References{"robot": p.Secret(ctx, map[string][]byte{"username": []byte(a.username), "password": []byte(a.password)}, nil)}
	p.Configure(ctx, refer, cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta), private)
}

// registry is an upstream that answers as a known registry does.
type registry struct {
	name, host string
	profile    registryprofile.Profile
	// expire makes the upstream refuse all tokens that it has issued. If expire is nil, the profile is
	// started again instead.
	expire func(ctx context.Context, p *rig.Run)
}

// begin starts the profile. The upstream then refuses the tokens of earlier profiles.
func (r registry) begin(ctx context.Context, p *rig.Run) {
	p.Helper()
	clearFaults(ctx, p)
	p.BreakAs(ctx, spec.Fault{
		Target: spec.Target{Role: spec.Upstream, Name: r.host}, Kind: spec.Profile, On: spec.All, Name: r.name, Profile: &r.profile,
	})
}

// prove proves the four claims of docs/registries.md, and records the times.
func (r registry) prove(ctx context.Context, p *rig.Run) {
	p.Helper()
	clearFaults(ctx, p)
	awaitFetches(ctx, p, r.host)
	first, second := p.Push(ctx, r.host), p.Push(ctx, r.host)
	r.begin(ctx, p)
	result := report.Registry{Registry: r.name, Containerd: containerdOf(ctx, p, p.Worker(0))}

	result.Cold = p.TimedPull(ctx, p.Worker(0), first).Seconds()
	r.proveOnce(ctx, p, first)
	p.TimedPullOf(ctx, p.Worker(1), second.ByDigest())
	r.proveOnce(ctx, p, second)
	p.TimedPull(ctx, p.Worker(1), second) // the cache stores the tag

	before := len(objects(ctx, p, first, "blobs"))
	result.Warm = p.TimedPullOf(ctx, p.Worker(1), first.ByDigest()).Seconds()
	p.TimedPull(ctx, p.Worker(1), first)
	if asked := objects(ctx, p, first, "blobs")[before:]; len(asked) > 0 {
		p.Fatalf("warm: %s was asked for a blob: %s %s by %s", r.host, asked[0].Method, asked[0].Path, asked[0].Asker)
	}

	if report.UsesTokens(r.profile) || r.expire != nil {
		result.Renewed = r.proveRenewed(ctx, p, first).Seconds()
	}
	result.Outage = r.proveOutage(ctx, p, second).Seconds()
	p.Check(report.Record(filepath.Join(rig.Artifacts, "registries.json"), result))
	p.Evidence("%s: cold %.2fs, warm %.2fs, new token %.2fs, outage %.2fs", r.name, result.Cold, result.Warm, result.Renewed, result.Outage)
}

// proveOnce proves that the cache fetched each blob of the image once, even if the upstream
// redirected the cache, and that no node sent a request.
func (r registry) proveOnce(ctx context.Context, p *rig.Run, img rig.Pushed) {
	p.Helper()
	blobs := objects(ctx, p, img, "blobs")
	for _, digest := range img.Blobs {
		got := blobs.By(accesslog.AskerCache).Gets().Filter(func(r accesslog.Record) bool {
			return strings.HasSuffix(r.Path, "/"+digest) && (r.Status == http.StatusOK || r.Status == http.StatusPartialContent)
		})
		if len(got) != 1 {
			p.Fatalf("%s sent blob %s %d times to its cache, want once", r.host, digest, len(got))
		}
	}
	if nodes := append(blobs, objects(ctx, p, img, "manifests")...).By(accesslog.AskerNode); len(nodes) > 0 {
		p.Fatalf("a node went past the cache: %s %s, status %d", nodes[0].Method, nodes[0].Path, nodes[0].Status)
	}
}

// proveRenewed proves that new content comes through the cache although the upstream refuses all
// tokens that it has issued, and returns how long the pull took. The content is in the repository
// of an image that has been pulled before, so the cache has a token for this repository.
func (r registry) proveRenewed(ctx context.Context, p *rig.Run, before rig.Pushed) time.Duration {
	p.Helper()
	img := p.PushBeside(ctx, before, "later")
	known := len(objects(ctx, p, img, ""))
	if r.expire != nil {
		r.expire(ctx, p)
	} else {
		r.begin(ctx, p)
	}
	took := p.TimedPull(ctx, p.Worker(0), img)
	refused := objects(ctx, p, img, "")[known:].Filter(func(r accesslog.Record) bool {
		return r.Authorization && r.Status >= http.StatusBadRequest && r.Status < http.StatusInternalServerError
	})
	if r.profile.Challenge == "bearer" && len(refused) == 0 {
		p.Fatalf("%s refused no token, so this proves nothing", r.host)
	}
	r.proveOnce(ctx, p, img)
	return took
}

// proveOutage proves that a node that has not pulled the image before gets it while the upstream
// refuses connections, and returns how long the pull took.
func (r registry) proveOutage(ctx context.Context, p *rig.Run, stored rig.Pushed) time.Duration {
	p.Helper()
	known := len(objects(ctx, p, stored, ""))
	p.Break(ctx, "upstream/"+r.host, spec.Refuse)
	took := p.TimedPull(ctx, p.Worker(0), stored)
	clearFaults(ctx, p)
	if asked := objects(ctx, p, stored, "")[known:]; len(asked) > 0 {
		p.Fatalf("%s could be asked, so this proves nothing: %s %s", r.host, asked[0].Method, asked[0].Path)
	}
	return took
}

// objects returns the requests for the repository of the image at all hosts of the upstream. kind
// is "blobs" or "manifests", or "" for all requests.
func objects(ctx context.Context, p *rig.Run, img rig.Pushed, kind string) accesslog.Records {
	p.Helper()
	return logOf(ctx, p, img.Host).Pulls().Filter(func(r accesslog.Record) bool {
		return strings.Contains(r.Path, "/v2/"+img.Repository+"/"+kind)
	})
}

func logOf(ctx context.Context, p *rig.Run, host string) accesslog.Records {
	p.Helper()
	log, err := p.Session.Testbed.Upstream(host).Log(ctx)
	p.Check(err)
	return log
}

// awaitFetches waits until the cache of an upstream fetches new content, for example after an
// outage.
func awaitFetches(ctx context.Context, p *rig.Run, host string) {
	p.Helper()
	awaitFetchesWithin(ctx, p, host, maxRestart)
}

func awaitFetchesWithin(ctx context.Context, p *rig.Run, host string, within time.Duration) {
	p.Helper()
	img := p.Push(ctx, host)
	url := fmt.Sprintf("%s/v2/%s/manifests/%s", p.Endpoints(ctx)[host], img.Repository, img.Tag)
	p.Await(ctx, "the cache of "+host+" has the manifest of a new image", within, func(ctx context.Context) (bool, string, error) {
		status, answer := manifestFrom(ctx, p, url)
		return status == http.StatusOK, fmt.Sprintf("%d %s", status, answer), nil
	})
}

// manifestFrom makes a node request a manifest, and returns the HTTP status, and the header and
// body of the answer. If there is no answer, it returns 0 and curl's error.
func manifestFrom(ctx context.Context, p *rig.Run, url string) (status int, answer string) {
	p.Helper()
	out, err := p.Worker(0).Exec(ctx, "curl", "--silent", "--show-error", "--insecure", "--max-time", "10", "--include",
		"--header", "Accept: application/vnd.oci.image.manifest.v1+json", "--write-out", "\n%{http_code}", url)
	if err != nil {
		return 0, err.Error()
	}
	at := strings.LastIndex(out, "\n")
	_, err = fmt.Sscan(out[at+1:], &status)
	p.Check(err)
	return status, out[:max(at, 0)]
}

// containerdOf returns the version of the worker's containerd.
func containerdOf(ctx context.Context, p *rig.Run, worker *cluster.Node) string {
	p.Helper()
	out, err := worker.Exec(ctx, "containerd", "--version") // containerd github.com/containerd/containerd/v2 v2.3.4
	p.Check(err)
	if words := strings.Fields(out); len(words) > 2 {
		return words[2]
	}
	return ""
}

// Names of a registry of Amazon ECR and of its API. Both names lead to the upstream of
// registriesECR, so no client needs a setting to find the API.
const (
	ecrHost = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	ecrAPI  = "api.ecr.eu-central-1.amazonaws.com"
	ecrLife = 45 * time.Second
)

// registriesECR proves the claims of registries for a private registry of Amazon ECR, for which the
// cache has an access key instead of a password.
func registriesECR() rig.Scenario {
	access := ecrAccess()
	name, amazon := "ecr", registryprofile.Profiles["ecr"]
	amazon.Challenge = "" // the registry requires a token of its API, instead of a fixed password
	r := registry{name: name, host: ecrHost, profile: amazon}
	refer := rig.References{}
	return rig.New("registries-ecr",
		rig.Prove("a registry of Amazon ECR requires a token", func(ctx context.Context, p *rig.Run) {
			options := p.Session.Testbed.UpstreamOptions(ecrHost)
			options.Aliases = []string{ecrAPI}
			upstream := p.Upstream(ctx, options)
			p.Check(upstream.SetECR(ctx, access))
			r.expire = func(ctx context.Context, p *rig.Run) { elapse(ctx, p, time.Now().Add(ecrLife)) }
			status, answer := manifestFrom(ctx, p, "https://"+ecrHost+"/v2/")
			if status != http.StatusUnauthorized {
				p.Fatalf("without a token the status is %d, so this proves nothing: %s", status, answer)
			}
		}),

		rig.Prove("its cache has an access key", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))
			refer["key"] = p.Secret(ctx, map[string][]byte{
				"accessKeyID": []byte(access.AccessKeyID), "secretAccessKey": []byte(access.SecretAccessKey),
			}, nil)
			refer["ca"] = p.Secret(ctx, map[string][]byte{"bundle.crt": p.Session.Testbed.CA.PEM()}, nil)
			p.Configure(ctx, refer, cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta), v1alpha3.RegistryCache{
				Upstream: ecrHost, HTTP: &v1alpha3.HTTP{}, SecretReferenceName: ptr.To("key"), CABundleSecretReferenceName: ptr.To("ca"),
			})
		}),

		rig.Prove("images come through the cache, even when the token has expired", func(ctx context.Context, p *rig.Run) {
			r.prove(ctx, p)
			p.Evidence("%d tokens sold", len(sold(ctx, p)))
		}),

		rig.Prove("a token that the registry has revoked is replaced", func(ctx context.Context, p *rig.Run) {
			awaitFetches(ctx, p, ecrHost)
			before := len(sold(ctx, p))
			access.Life += time.Second // a changed access revokes all tokens
			p.Check(p.Session.Testbed.Upstream(ecrHost).SetECR(ctx, access))
			awaitFetches(ctx, p, ecrHost)
			if len(sold(ctx, p)) == before {
				p.Fatalf("new content came without a new token, so this proves nothing")
			}
		}),
	)
}

// sold returns the requests to the API of ECR that were answered with a token.
func sold(ctx context.Context, p *rig.Run) accesslog.Records {
	p.Helper()
	return logOf(ctx, p, ecrHost).Filter(func(r accesslog.Record) bool {
		return r.Host == ecrAPI && r.Method == http.MethodPost && r.Status == http.StatusOK && r.Authorization
	})
}
