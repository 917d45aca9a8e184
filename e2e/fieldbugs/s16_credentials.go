package fieldbugs

import (
	"context"
	"errors"
	"strings"

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
			if err := r.requireCached(ctx, "alpha", "the cache serves with the credentials"); err != nil {
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
			if err := r.requireCached(ctx, "alpha", "the cache goes on with the credentials of before"); err != nil {
				return err
			}
			return r.foreignRealm(ctx)
		},
	}
}

// foreignRealm lets alpha name gamma as where to get a token.
func (r *Rig) foreignRealm(ctx context.Context) error {
	img, err := r.Push(ctx, "alpha")
	if err != nil {
		return err
	}
	realm := `Www-Authenticate=Bearer realm="http://` + host("gamma") + `/token",service="alpha"`
	if err := r.Break(ctx, "upstream/alpha", fault.Status, "--status", "401", "--header", realm); err != nil {
		return err
	}
	if _, err := r.Pull(ctx, img.Reference); err != nil { // nobody can serve it: that is no claim
		return err
	}
	if err := r.Mend(ctx); err != nil {
		return err
	}
	log, err := r.Testbed(ctx, "logs", "upstream", "gamma")
	if err != nil {
		return err
	}
	leaked := strings.Count(log, `"authorization":true`)
	return r.Require("no credentials reach the host of a foreign realm", leaked == 0, "%d requests with credentials at gamma", leaked)
}
