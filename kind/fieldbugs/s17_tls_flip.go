package fieldbugs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/status"
)

// HTTPS has caches that nodes ask by HTTPS.
const HTTPS = "kind/fieldbugs/shoots/https.yaml"

// The addresses of caches begin with one of these.
const (
	byHTTP  = "http://"
	byHTTPS = "https://"
)

// tlsFlip turns HTTPS on, off and on again.
func tlsFlip() Bug {
	const longest = 15 * time.Second // the cache starts anew each time; one hang of containerd is 30 s
	return Bug{
		ID: "s17", Slug: "tls-flip", Title: "HTTPS of a cache goes on, off and on again",
		Reports: []string{"gardener-extension-registry-cache#324", "gardener-extension-registry-cache#344"},
		Symptom: "After quick changes of http.tls nodes use the wrong scheme, or the Service of the cache is missing.",
		Fault:   "none: the Shoot changes three times without a pause, then once more",
		Expectation: "Meanwhile no pull fails or takes longer than 15 s. After the changes all nodes use the endpoint and " +
			"scheme in the status, and new images come through the cache. containerd never reports a certificate error " +
			"for a cache.",
		Lane: Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			since, err := r.Ask(ctx, "since", "exec", "worker", "--", "date", "+@%s") // all nodes have the clock of this machine
			if err != nil {
				return err
			}
			r.Note("meanwhile, again and again: testbed pull \"$(testbed push --upstream alpha)\" --all")
			slowest, err := r.pullWhile(ctx, []string{"--all"}, r.flip)
			if err != nil {
				return err
			}
			if err := r.Within("the slowest pull meanwhile", slowest, longest); err != nil {
				return err
			}
			for _, node := range workers {
				if err := r.requireNoX509(ctx, node, since); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// flip changes http.tls three times as fast as Shoots are reconciled, and once more, and looks at
// what nodes do then.
func (r *Rig) flip(ctx context.Context) error {
	for _, shoot := range []string{HTTPS, TwoCaches, HTTPS} {
		if err := r.Apply(ctx, shoot); err != nil {
			return err
		}
	}
	if err := r.requireScheme(ctx, "when it is on again", byHTTPS); err != nil {
		return err
	}
	if err := r.Apply(ctx, TwoCaches); err != nil {
		return err
	}
	return r.requireScheme(ctx, "when it is off", byHTTP)
}

// requireScheme requires that all workers ask the caches where the status says, by the scheme, and
// pull through that of alpha.
func (r *Rig) requireScheme(ctx context.Context, when, scheme string) error {
	const heard = 30 * time.Second
	err := r.Soon(ctx, when+" all nodes ask by "+scheme, heard, func(ctx context.Context) (bool, string, error) {
		status, err := r.Shoot(ctx)
		if err != nil {
			return false, "", err
		}
		wrong, err := otherSchemes(status, scheme)
		return len(wrong) == 0, strings.Join(wrong, "; "), err
	})
	if err != nil {
		return err
	}
	img, err := r.requireCachedWithin(ctx, when+" new images come through the cache", settled)
	if err != nil {
		return err
	}
	_, err = r.requireHit(ctx, img.Reference, when+" the other node has them from its store")
	return err
}

// otherSchemes says which cache is not asked by the scheme: the status names another one, or a
// worker another address than that.
func otherSchemes(status status.Shoot, scheme string) ([]string, error) {
	wrong, err := missingMirrors(status)
	if err != nil {
		return nil, err
	}
	caches, err := caches(status)
	for _, cache := range caches {
		if !strings.HasPrefix(cache.Endpoint, scheme) {
			wrong = append(wrong, fmt.Sprintf("the cache of %s is %s, want %s", cache.Upstream, cache.Endpoint, scheme))
		}
	}
	return wrong, err
}

// requireNoX509 requires that no line of containerd's journal since then ("@1700000000") tells of
// certificates. It must have pulled.
func (r *Rig) requireNoX509(ctx context.Context, node, since string) error {
	journal, err := r.Exec(ctx, node, "journalctl", "--unit=containerd.service", "--since="+since, "--output=cat")
	if err != nil {
		return err
	}
	pulled, said, line := certificateErrors(journal)
	if pulled == 0 {
		return fmt.Errorf("containerd of %s tells of no pull since %s: this would prove nothing", node, since)
	}
	return r.Require("containerd of "+node+" complains of no certificate", said == 0, "%d lines with x509, %d images pulled%s", said, pulled, line)
}

// noCache is what containerd says of a server that is no cache. The address of a pod that has just
// gone leads out of the testbed, where somebody else may answer by HTTPS. A cache with such a
// certificate is noticed all the same: nodes do not ask it.
const noCache = "doesn't contain any IP SANs"

// certificateErrors counts in a journal the images that were pulled and the lines that tell of
// certificates, and returns the first.
func certificateErrors(journal string) (pulled, said int, first string) {
	for line := range strings.Lines(journal) {
		if strings.Contains(line, `msg="Pulled image `) {
			pulled++
		}
		if strings.Contains(line, "x509") && !strings.Contains(line, noCache) {
			said++
			if said == 1 {
				first = ": " + strings.TrimSpace(line)
			}
		}
	}
	return pulled, said, first
}
