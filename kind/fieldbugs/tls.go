package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/status"
)

const byHTTP, byHTTPS = "http://", "https://"

func tlsFlip() Bug {
	const longest = 15 * time.Second // the cache restarts each time; if it hung, containerd would wait 30 s
	return Bug{
		ID: "s17", Slug: "tls-flip", Title: "HTTPS of a cache goes on, off and on again",
		Reports: []string{"gardener-extension-registry-cache#324", "gardener-extension-registry-cache#344"},
		Symptom: "After quick changes of http.tls nodes use the wrong scheme, or the Service of the cache is missing.",
		Fault:   "none: the Shoot changes three times without a pause, then once more",
		Expectation: "Meanwhile no pull fails or takes longer than 15 s. After the changes all nodes use the endpoint and " +
			"scheme in the status, and new images come through the cache. containerd never reports a certificate error " +
			"for a cache.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			since, err := r.Ask(ctx, "since", "exec", "worker", "--", "date", "+@%s") // all nodes use the clock of this machine
			if err != nil {
				return err
			}
			r.Note("in the background, repeatedly: testbed pull \"$(testbed push --upstream alpha)\" --all")
			slowest, err := r.pullWhile(ctx, []string{"--all"}, r.flipTLS)
			if err != nil {
				return err
			}
			if err := r.Within("the slowest pull during the change", slowest, longest); err != nil {
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

// flipTLS changes http.tls three times without a pause, and then once more. It checks the scheme
// that nodes use after the third and after the last change.
func (r *Rig) flipTLS(ctx context.Context) error {
	for _, shoot := range []string{HTTPS, TwoCaches, HTTPS} {
		if err := r.Apply(ctx, shoot); err != nil {
			return err
		}
	}
	if err := r.requireScheme(ctx, "with HTTPS on again", byHTTPS); err != nil {
		return err
	}
	if err := r.Apply(ctx, TwoCaches); err != nil {
		return err
	}
	return r.requireScheme(ctx, "with HTTPS off", byHTTP)
}

// requireScheme requires that the endpoints in the status have the scheme, that all workers use
// these endpoints, and that pulls go through the cache of alpha.
func (r *Rig) requireScheme(ctx context.Context, when, scheme string) error {
	const configured = 30 * time.Second
	err := r.Soon(ctx, when+", all nodes use "+scheme, configured, r.withoutProblems(func(shoot status.Shoot) ([]string, error) {
		return otherSchemes(shoot, scheme)
	}))
	if err != nil {
		return err
	}
	img, err := r.requireCachedWithin(ctx, when+", new images come through the cache", restartedBound)
	if err != nil {
		return err
	}
	_, err = r.requireHit(ctx, img.Reference, when+", the other node gets them from the cache's store")
	return err
}

// otherSchemes returns a problem for each cache whose endpoint in the status has another scheme,
// and for each worker that does not use the endpoint from the status.
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

// requireNoX509 requires that containerd's journal, from a time ("@1700000000") on, has no
// certificate error. A journal without pulls is an error.
func (r *Rig) requireNoX509(ctx context.Context, node, since string) error {
	journal, err := r.Exec(ctx, node, "journalctl", "--unit=containerd.service", "--since="+since, "--output=cat")
	if err != nil {
		return err
	}
	pulled, failures, line := certificateErrors(journal)
	if pulled == 0 {
		return fmt.Errorf("the journal of containerd on %s has no pull since %s, so this proves nothing", node, since)
	}
	return r.Require("containerd of "+node+" reports no certificate error", failures == 0, "%d lines with x509, %d images pulled%s", failures, pulled, line)
}

// otherServerError is part of the certificate error for a server outside the testbed. Requests to
// the address of a deleted pod can reach such a server. If a cache had such a certificate, s17
// would still fail, because nodes would not use this cache.
const otherServerError = "doesn't contain any IP SANs"

func certificateErrors(journal string) (pulled, failures int, first string) {
	for line := range strings.Lines(journal) {
		if strings.Contains(line, `msg="Pulled image `) {
			pulled++
		}
		if strings.Contains(line, "x509") && !strings.Contains(line, otherServerError) {
			failures++
			if failures == 1 {
				first = ": " + strings.TrimSpace(line)
			}
		}
	}
	return pulled, failures, first
}

func caRotated() Bug {
	return Bug{
		ID: "s18", Slug: "ca-rotation", Title: "the CAs are rotated",
		Reports:     []string{"gardener#10375", "gardener#10831"},
		Symptom:     "Pulls through the cache fail with x509 errors during or after a rotation.",
		Fault:       "none: gardenlet rotates the CAs",
		Expectation: "All nodes pull through the cache in each phase.",
		Shoot:       HTTPS,
		Reproduce: func(ctx context.Context, r *Rig) error {
			r.Afterwards(r.endRotation)
			for _, phase := range []string{"rotate-ca-start", "rotate-ca-complete"} {
				if _, err := r.Testbed(ctx, "shoot", phase); err != nil {
					return err
				}
				img, err := r.requireCachedWithin(ctx, "after "+phase+" new images come through the cache", restartedBound)
				if err != nil {
					return err
				}
				if _, err := r.requireHit(ctx, img.Reference, "after "+phase+" nodes pull through the cache"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// endRotation completes a rotation in any phase, so that the next bug starts without one. If there
// is no rotation, it does nothing.
func (r *Rig) endRotation(ctx context.Context) error {
	const phases = 2 // from Preparing, two commands complete it
	for commands := 0; ; commands++ {
		phase, verb, err := r.rotation(ctx)
		switch {
		case err != nil || verb == "":
			return err
		case commands == phases:
			return fmt.Errorf("the rotation is still in phase %s", phase)
		}
		if _, err := r.run(ctx, []string{"shoot", verb}); err != nil {
			return fmt.Errorf("end the rotation in phase %s: %w", phase, err)
		}
	}
}

// rotation returns the phase of the rotation and the verb of `testbed shoot` that continues it, or
// no verb. It returns an error if the phase could not be read, because an empty phase looks like no
// rotation.
func (r *Rig) rotation(ctx context.Context) (phase gardencorev1beta1.CredentialsRotationPhase, verb string, err error) {
	var status status.Shoot
	if err := r.decode(ctx, &status, []string{"shoot", "get"}); err != nil {
		return "", "", err
	}
	if err := status.CheckStage(); err != nil {
		return "", "", fmt.Errorf("phase of the rotation: %w", err)
	}
	switch status.Rotation {
	case gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationCompleting:
		verb = "reconcile"
	case gardencorev1beta1.RotationPrepared:
		verb = "rotate-ca-complete"
	}
	return status.Rotation, verb, nil
}

func caDamaged() Bug {
	const bound = 20 * time.Second
	return Bug{
		ID: "s19", Slug: "ca-file-damaged", Title: "the CA file of a mirror is damaged on a node",
		Reports: []string{"containerd#10027", "gardener#10810"},
		Symptom: "The node can pull no image of the upstream: containerd treats an unreadable CA file as an error and does " +
			"not ask the upstream.",
		Fault:       "none: the certificate in the file is damaged",
		Expectation: "A pull succeeds within 20 s without help, because a systemd unit on the node restores the file.",
		Shoot:       HTTPS,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			folder := "/etc/containerd/certs.d/" + host("alpha")
			out, err := r.Exec(ctx, "worker2", "cat", folder+"/hosts.toml")
			if err != nil {
				return err
			}
			file := caFile(out)
			if file == "" {
				return fmt.Errorf("hosts.toml names no CA file: %s", out)
			}
			if !path.IsAbs(file) {
				file = path.Join(folder, file)
			}
			// sed prints the replaced line. Without a replacement the pull proves nothing.
			out, err = r.Exec(ctx, "worker2", "sed", "--in-place", "s/BEGIN CERTIFICATE/BEGIN GARBAGE/w /dev/stdout", file)
			if err != nil || !strings.Contains(out, "GARBAGE") {
				return errors.Join(err, fmt.Errorf("%s has no certificate", file))
			}
			if _, err := r.awaitPull(ctx, img, bound); err != nil {
				return err
			}
			return r.Soon(ctx, "the CA file is restored", bound, func(ctx context.Context) (bool, string, error) {
				out, err := r.Exec(ctx, "worker2", "cat", file)
				return strings.Contains(out, "BEGIN CERTIFICATE") && !strings.Contains(out, "BEGIN GARBAGE"), out, err
			})
		},
	}
}

func caFile(hosts string) string {
	for line := range strings.Lines(hosts) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.TrimSpace(key) == "ca" {
			return strings.Trim(strings.TrimSpace(value), `"[] `)
		}
	}
	return ""
}
