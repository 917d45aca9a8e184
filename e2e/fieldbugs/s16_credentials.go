package fieldbugs

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/fault"
)

// The Shoots of s16.
const (
	Credentials    = "e2e/fieldbugs/shoots/credentials.yaml"
	BadCredentials = "e2e/fieldbugs/shoots/credentials-bad.yaml"
)

// credentials are those of a cache for its upstream. That an upstream takes them is shown by the scenario credentials.
func credentials() Bug {
	return Bug{
		ID: "s16", Title: "credentials with hard characters, a Secret that is replaced by a bad one, a foreign realm",
		Reports: []string{"gardener-extension-registry-cache#94", "distribution#3457", "quay#6697"},
		Symptom: "A cache crashes for a user name that begins with @; a rotation to a bad Secret is noticed when nothing can be pulled any more; " +
			"an upstream's answer makes the cache send its credentials to another host (CVE-2026-33540).",
		Fault: "upstream/alpha status --status 401 --header Www-Authenticate=Bearer",
		Expectation: "The cache starts with the credentials and serves. The bad Secret is refused although only spec.resources has changed, and the " +
			"cache goes on. No credentials reach the host of a foreign realm.",
		Lane: Full, Shoot: Credentials,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.requireCached(ctx, "the cache starts with the credentials, and serves"); err != nil {
				return err
			}
			var refused *CommandError
			err := r.Apply(ctx, BadCredentials)
			if err != nil && !errors.As(err, &refused) {
				return err
			}
			said := reason(err)
			if err := r.Require("the bad Secret is refused", strings.Contains(said, "password"), "%s", said); err != nil {
				return err
			}
			if err := r.requireCached(ctx, "the cache goes on with the credentials of before"); err != nil {
				return err
			}
			return r.foreignRealm(ctx)
		},
	}
}

// foreignRealm lets alpha name first itself and then gamma's address as where to get a token, while its cache starts: only then it
// looks. The first shows that credentials would be seen.
func (r *Rig) foreignRealm(ctx context.Context) error {
	address, err := r.Exec(ctx, "worker", "getent", "ahostsv4", host("gamma"))
	if err != nil {
		return err
	}
	ip, _, _ := strings.Cut(address, " ")
	sent, err := r.credentialsSent(ctx, host("alpha"), "alpha")
	if err != nil {
		return err
	}
	if sent == 0 {
		return errors.New("no credentials reach the realm of the upstream's own host: this would prove nothing")
	}
	leaked, err := r.credentialsSent(ctx, ip, "gamma")
	if err != nil {
		return err
	}
	return r.Require("no credentials reach the host of a foreign realm", leaked == 0,
		"%d requests with credentials at gamma, %d at the upstream's own realm", leaked, sent)
}

// credentialsSent starts alpha's cache anew while alpha names a realm, lets a node pull, and counts the requests with credentials for
// a token that an upstream has seen.
func (r *Rig) credentialsSent(ctx context.Context, realm, seenBy string) (int, error) {
	img, err := r.Push(ctx, "alpha")
	if err != nil {
		return 0, err
	}
	header := `Www-Authenticate=Bearer realm="http://` + realm + `/token",service="alpha"`
	if err := r.Break(ctx, "upstream/alpha", fault.Status, "--status", "401", "--header", header); err != nil {
		return 0, err
	}
	before, err := r.cachePod(ctx, "alpha")
	if err != nil {
		return 0, err
	}
	if err := r.Break(ctx, "cache/alpha", fault.Kill); err != nil {
		return 0, err
	}
	if err := r.awaitCache(ctx, "alpha", time.Minute, func(pod corev1.Pod) bool { return pod.UID != before.UID }); err != nil {
		return 0, err
	}
	if _, err := r.Pull(ctx, img.Reference); err != nil { // nobody can serve it: that is no claim
		return 0, err
	}
	if err := r.Mend(ctx); err != nil {
		return 0, err
	}
	log, err := r.Testbed(ctx, "logs", "upstream", seenBy)
	if err != nil {
		return 0, err
	}
	count := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"/token"`) && strings.Contains(line, `"authorization":true`) {
			count++
		}
	}
	return count, nil
}
