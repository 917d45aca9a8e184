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
		Expectation: "After each change nodes ask by the scheme that the Shoot wants, and new images come through the cache.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			for _, change := range []struct{ shoot, scheme string }{{HTTPS, "https"}, {TwoCaches, "http"}, {HTTPS, "https"}} {
				if err := r.Apply(ctx, change.shoot); err != nil {
					return err
				}
				err := r.awaitMirrors(ctx, "alpha", bound, func(address string) bool {
					return strings.HasPrefix(address, change.scheme+"://")
				})
				if err != nil {
					return err
				}
				if err := r.requireCached(ctx, "alpha", "new images come through the cache by "+change.scheme); err != nil {
					return err
				}
			}
			return r.Apply(ctx, TwoCaches)
		},
	}
}
