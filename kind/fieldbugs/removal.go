package fieldbugs

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

func extensionDisabled() Bug {
	const longest = 5 * time.Second
	const unmanaged = "/etc/containerd/certs.d/foreign.example"
	return Bug{
		ID: "s8", Slug: "extension-disabled", Title: "the extension is disabled while gardener-node-agent of one node is stopped",
		Reports:     []string{"spegel#67", "spegel#767", "spegel#413"},
		Symptom:     "Nodes still use a deleted cache and each pull takes minutes, or an unmanaged hosts.toml is deleted.",
		Fault:       "none: gardener-node-agent of one node is stopped",
		Expectation: "No pull takes longer than 5 s. The extension's hosts.toml files are deleted, the unmanaged one is not.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			r.Afterwards(func(ctx context.Context) error {
				_, err := r.Exec(ctx, "worker2", "systemctl", "start", "gardener-node-agent.service")
				_, removed := r.Exec(ctx, "worker2", "rm", "-rf", unmanaged)
				return errors.Join(err, removed)
			})
			_, err := r.Exec(ctx, "worker2", "bash", "-c", "mkdir -p "+unmanaged+" && echo 'server = \"https://foreign.example\"' >"+unmanaged+"/hosts.toml")
			if err != nil {
				return err
			}
			if _, err := r.Exec(ctx, "worker2", "systemctl", "stop", "gardener-node-agent.service"); err != nil {
				return err
			}
			r.Note("in the background, repeatedly: testbed pull \"$(testbed push --upstream alpha)\" --node worker2")
			slowest, err := r.pullWhile(ctx, []string{"--node", "worker2"}, func(ctx context.Context) error {
				_, err := r.Testbed(ctx, "shoot", "disable")
				return err
			})
			if err != nil {
				return err
			}
			if err := r.Within("the slowest pull during the change", slowest, longest); err != nil {
				return err
			}
			for _, node := range []string{"worker", "worker2"} {
				out, err := r.Exec(ctx, node, "find", "/etc/containerd/certs.d", "-name", "*.upstream.test")
				if err != nil {
					return err
				}
				if err := r.Require("no hosts.toml of the extension is left on "+node, strings.TrimSpace(out) == "", "%q", strings.TrimSpace(out)); err != nil {
					return err
				}
			}
			out, err := r.Exec(ctx, "worker2", "cat", unmanaged+"/hosts.toml")
			if err != nil {
				return err
			}
			return r.Require("the unmanaged file is still there", strings.Contains(out, "foreign.example"), "%s", strings.TrimSpace(out))
		},
	}
}

// pullWhile pulls new images of alpha, at least one, while the function do runs. When do has
// returned, pullWhile returns the duration of the slowest pull, or an *Unmet if a pull failed.
func (r *Rig) pullWhile(ctx context.Context, flags []string, do func(context.Context) error) (time.Duration, error) {
	background := r.background()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var slowest time.Duration
	for {
		img, err := background.Push(ctx, "alpha")
		if err == nil {
			report, pulled := background.Pull(ctx, img.Reference, flags...)
			if err = pulled; err == nil {
				slowest, err = max(slowest, Slowest(report)), background.Succeeded("all pulls during the change succeed", report)
			}
		}
		select {
		case ended := <-done:
			return slowest, errors.Join(err, ended)
		default:
		}
		if err != nil {
			return slowest, errors.Join(err, <-done)
		}
	}
}

func removeOne() Bug {
	return Bug{
		ID: "s9", Slug: "cache-removed", Title: "one of two caches is removed",
		Reports:     []string{"spegel#67", "spegel#767"},
		Symptom:     "Nodes still use a deleted cache, or nodes lose the cache of the other upstream.",
		Fault:       "none: one cache is removed from the Shoot",
		Expectation: "The other cache serves from its store. Pulls of the removed cache's upstream are direct. Its volume is deleted.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			kept, err := r.newImage(ctx, "beta")
			if err != nil {
				return err
			}
			if err := r.Apply(ctx, OneCache); err != nil {
				return err
			}
			if _, err := r.requireHit(ctx, kept.Reference, "the other cache still serves what it has stored"); err != nil {
				return err
			}
			img, report, err := r.pushAndPull(ctx, "alpha", "--all")
			if err != nil {
				return err
			}
			direct, want := BlobsBy(report, pull.FromUpstream), report.Total.Pulls*(len(img.Objects)-1)
			if err := r.Require("pulls of the removed cache's upstream are direct",
				report.Total.Failed == 0 && report.Total.Fallbacks == 0 && report.Total.Pulls > 0 && direct == want,
				"%d blobs of the upstream, %d fallbacks", direct, report.Total.Fallbacks); err != nil {
				return err
			}
			var claims corev1.PersistentVolumeClaimList
			if err := r.get(ctx, &claims, "persistentvolumeclaims", selector("alpha")); err != nil {
				return err
			}
			return r.Require("the volume of the removed cache is deleted", len(claims.Items) == 0, "%d claims", len(claims.Items))
		},
	}
}
