package fieldbugs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/pull"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Manifests of the Shoots of s16.
const (
	Credentials    = "kind/fieldbugs/shoots/credentials.yaml"
	BadCredentials = "kind/fieldbugs/shoots/credentials-bad.yaml"
)

// acceptedHash is the SHA-256 of the user:password in the manifest Credentials.
const acceptedHash = "2b7810ddb0cd8dca2f4c691d1a5dc5180612030a1594808b00bc832ba1d3d428"

// credentials has no rotation to valid credentials: the e2e scenario "credentials" covers that.
func credentials() Bug {
	return Bug{
		ID: "s16", Slug: "credentials", Title: "special characters in credentials, a bad Secret, an unrelated realm",
		Reports: []string{"gardener-extension-registry-cache#94", "distribution#3457", "quay#6697"},
		Symptom: "A cache crashes for a user name that starts with @. A rotation to a bad Secret is noticed only when all " +
			"pulls fail. The upstream makes the cache send the credentials to another host (CVE-2026-33540).",
		Fault: "upstream/alpha credentials --accept " + acceptedHash + "; upstream/alpha status --status 401 " +
			`--header 'Www-Authenticate=Bearer realm="http://gamma.elsewhere.test/token",service="alpha"'; cache/alpha kill`,
		Expectation: "The cache authenticates at the upstream and serves. A bad Secret is rejected although only spec.resources " +
			"changed, and the cache keeps running. No credentials are sent to the host of an unrelated realm.",
		Shoot: Credentials,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "upstream/alpha", spec.Credentials, "--accept", acceptedHash); err != nil {
				return err
			}
			if err := r.requireAuthorized(ctx, "the cache serves with the credentials"); err != nil {
				return err
			}
			var refused *CommandError
			err := r.Apply(ctx, BadCredentials)
			if err != nil && !errors.As(err, &refused) {
				return err
			}
			message := reason(err)
			if err := r.Require("the bad Secret is rejected", strings.Contains(message, "password"), "%s", message); err != nil {
				return err
			}
			if err := r.requireAuthorized(ctx, "the cache keeps the previous credentials"); err != nil {
				return err
			}
			if err := r.DeleteFaults(ctx); err != nil {
				return err
			}
			return r.unrelatedRealm(ctx)
		},
	}
}

// requireAuthorized requires that a new image comes through alpha's cache, that the upstream sent
// each blob once, to a request with credentials, and that a request without credentials gets a 401.
func (r *Rig) requireAuthorized(ctx context.Context, claim string) error {
	img, err := r.requireCached(ctx, claim)
	if err != nil {
		return err
	}
	log, err := r.accessLog(ctx, "alpha")
	if err != nil {
		return err
	}
	given, shown, err := blobsGiven(log, img)
	if err != nil {
		return err
	}
	code, err := r.Exec(ctx, "worker", "curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "http://"+host("alpha")+"/v2/")
	if err != nil {
		return err
	}
	blobs := len(img.Objects) - 1
	return r.Require(claim+", according to the upstream's log", shown == blobs && given == blobs && code == "401",
		"the upstream sent %d of %d blobs to requests with credentials, %d to all requests; a request without credentials gets status %s", shown, blobs, given, code)
}

// accessLog returns the access log of an upstream ("alpha"), one JSON record per line.
func (r *Rig) accessLog(ctx context.Context, upstream string) (string, error) {
	argv := []string{"docker", "logs", kind.DefaultPrefix + "-upstream-" + upstream}
	text := strings.Join(argv, " ")
	r.show(func() { r.script.add(&line{text: text}) })
	output := r.output
	if output == nil {
		output = command.Output
	}
	log, err := output(ctx, argv...)
	fmt.Fprintf(r.transcript, "$ %s\n%s", text, log)
	return log, err
}

// blobsGiven counts, in an access log, the blobs of the image that the upstream sent (given), and
// those of them for which the request had credentials (shown).
func blobsGiven(log string, img pull.Pushed) (given, shown int, err error) {
	repository := img.Reference[strings.Index(img.Reference, "/")+1 : strings.LastIndex(img.Reference, ":")]
	for line := range strings.Lines(log) {
		var record accesslog.Record
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			return 0, 0, fmt.Errorf("decode the access log of an upstream: %w", err)
		}
		if record.Repository != repository || record.Kind != accesslog.KindBlob || record.Method != http.MethodGet ||
			record.Status != http.StatusOK || record.Asker == accesslog.AskerHarness { // faults do not apply to the testbed's own requests
			continue
		}
		given++
		if record.Authorization {
			shown++
		}
	}
	return given, shown, nil
}

// foreignHost is a name of gamma in a domain that is not that of the upstreams. It is no IP
// address: libraries refuse a private one for another reason.
const foreignHost = "gamma.elsewhere.test"

// unrelatedRealm starts alpha's cache twice, since a cache reads the realm for tokens only at its
// start. First alpha names its own host as the realm, then gamma in another domain. The first start
// proves that the access log shows credentials if a cache sends them.
func (r *Rig) unrelatedRealm(ctx context.Context) error {
	sent, err := r.credentialsSent(ctx, host("alpha"), "alpha")
	if err != nil {
		return err
	}
	if sent == 0 {
		return errors.New("no credentials reach the realm of the upstream's own host, so this proves nothing")
	}
	leaked, err := r.credentialsSent(ctx, foreignHost, "gamma")
	if err != nil {
		return err
	}
	return r.Require("no credentials reach the host of an unrelated realm", leaked == 0,
		"%d requests with credentials at gamma, %d at the upstream's own realm", leaked, sent)
}

// credentialsSent restarts alpha's cache while alpha's responses name the realm, pulls on a node,
// and counts the token requests with credentials that the upstream seenBy received.
func (r *Rig) credentialsSent(ctx context.Context, realm, seenBy string) (int, error) {
	earlier, err := r.tokenRequests(ctx, seenBy)
	if err != nil {
		return 0, err
	}
	img, err := r.Push(ctx, "alpha")
	if err != nil {
		return 0, err
	}
	header := `Www-Authenticate=Bearer realm="http://` + realm + `/token",service="alpha"`
	if err := r.Break(ctx, "upstream/alpha", spec.Status, "--status", "401", "--header", header); err != nil {
		return 0, err
	}
	before, err := r.cachePod(ctx, "alpha")
	if err != nil {
		return 0, err
	}
	if err := r.Break(ctx, "cache/alpha", spec.Kill); err != nil {
		return 0, err
	}
	if err := r.awaitCache(ctx, "alpha", time.Minute, before); err != nil {
		return 0, err
	}
	// Nodes may have noticed that the cache was away.
	if err := r.awaitMirrors(ctx, "alpha", mirrorsTimeout, hasMirror); err != nil {
		return 0, err
	}
	if _, err := r.Pull(ctx, img.Reference); err != nil { // the pull fails, but Pull does not
		return 0, err
	}
	if err := r.DeleteFaults(ctx); err != nil {
		return 0, err
	}
	all, err := r.tokenRequests(ctx, seenBy)
	return all - earlier, err
}

// tokenRequests counts the token requests with credentials in the whole log of an upstream.
func (r *Rig) tokenRequests(ctx context.Context, upstream string) (int, error) {
	log, err := r.accessLog(ctx, upstream)
	count := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"/token"`) && strings.Contains(line, `"authorization":true`) {
			count++
		}
	}
	return count, err
}
