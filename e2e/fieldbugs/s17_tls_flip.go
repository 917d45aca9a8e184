package fieldbugs

import (
	"context"
	"strings"
	"time"
)

// HTTPS has caches that nodes ask by HTTPS.
const HTTPS = "e2e/fieldbugs/shoots/https.yaml"

// tlsFlip turns HTTPS on, off and on again.
func tlsFlip() Bug {
	const bound = 30 * time.Second
	return Bug{
		ID: "s17", Title: "HTTPS of a cache goes on, off and on again",
		Reports:     []string{"gardener-extension-registry-cache#324", "gardener-extension-registry-cache#344"},
		Symptom:     "After a quick change of http.tls nodes ask by the wrong scheme, or the Service of the cache is gone.",
		Fault:       "none: the Shoot changes three times",
		Expectation: "After the last of three changes in a row nodes ask by its scheme, new images come through the cache, and nothing says x509.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			for _, shoot := range []string{HTTPS, TwoCaches, HTTPS} {
				if err := r.Apply(ctx, shoot); err != nil {
					return err
				}
			}
			err := r.awaitMirrors(ctx, "alpha", bound, func(address string) bool { return strings.HasPrefix(address, "https://") })
			if err != nil {
				return err
			}
			if err := r.requireCached(ctx, "new images come through the cache by HTTPS"); err != nil {
				return err
			}
			out, err := r.Exec(ctx, "worker", "journalctl", "--unit=containerd.service", "--since=-30s", "--output=cat")
			if err != nil {
				return err
			}
			said := strings.Count(out, "x509")
			return r.Require("containerd says nothing of x509 in the last 30 s", said == 0, "%d lines", said)
		},
	}
}
