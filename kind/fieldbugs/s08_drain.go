package fieldbugs

import (
	"context"
	"errors"
	"strings"
	"time"
)

// drain disables the extension while one node gets no new configuration.
func drain() Bug {
	const longest = 5 * time.Second
	const foreign = "/etc/containerd/certs.d/foreign.example"
	return Bug{
		ID: "s8", Slug: "extension-disabled", Title: "the extension is disabled, and one node learns of it late",
		Reports:     []string{"spegel#67", "spegel#767", "spegel#413"},
		Symptom:     "Nodes keep asking a deleted cache and each pull takes minutes, or an unmanaged hosts.toml is deleted.",
		Fault:       "none: gardener-node-agent of one node is stopped",
		Expectation: "No pull takes longer than 5 s. The extension's hosts.toml files are deleted, the unmanaged one is not.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			r.Afterwards(func(ctx context.Context) error {
				_, err := r.Exec(ctx, "worker2", "systemctl", "start", "gardener-node-agent.service")
				_, removed := r.Exec(ctx, "worker2", "rm", "-rf", foreign)
				return errors.Join(err, removed)
			})
			_, err := r.Exec(ctx, "worker2", "bash", "-c", "mkdir -p "+foreign+" && echo 'server = \"https://foreign.example\"' >"+foreign+"/hosts.toml")
			if err != nil {
				return err
			}
			if _, err := r.Exec(ctx, "worker2", "systemctl", "stop", "gardener-node-agent.service"); err != nil {
				return err
			}
			r.Note("meanwhile, again and again: testbed pull \"$(testbed push --upstream alpha)\" --node worker2")
			slowest, err := r.pullWhile(ctx, []string{"--node", "worker2"}, func(ctx context.Context) error {
				_, err := r.Testbed(ctx, "shoot", "disable")
				return err
			})
			if err != nil {
				return err
			}
			if err := r.Within("the slowest pull meanwhile", slowest, longest); err != nil {
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
			out, err := r.Exec(ctx, "worker2", "cat", foreign+"/hosts.toml")
			if err != nil {
				return err
			}
			return r.Require("the unmanaged file is still there", strings.Contains(out, "foreign.example"), "%s", strings.TrimSpace(out))
		},
	}
}

// pullWhile pulls new images of alpha where the flags say, one after another and at least one,
// while something is done. It returns how long the slowest took; one that fails is a claim that
// does not hold. What is done is waited for in any case.
func (r *Rig) pullWhile(ctx context.Context, flags []string, do func(context.Context) error) (time.Duration, error) {
	beside := r.beside()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var slowest time.Duration
	for {
		img, err := beside.Push(ctx, "alpha")
		if err == nil {
			report, pulled := beside.Pull(ctx, img.Reference, flags...)
			if err = pulled; err == nil {
				slowest, err = max(slowest, Slowest(report)), beside.Succeeded("all pulls meanwhile succeed", report)
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
