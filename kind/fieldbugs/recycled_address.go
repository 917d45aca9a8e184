package fieldbugs

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// writeMirror is a bash script: it makes $2 the mirror of the upstream $1, and fails if there is a
// mirror already.
const writeMirror = `folder=/etc/containerd/certs.d/$1
mkdir "$folder"
printf '[host."%s"]\n  capabilities = ["pull", "resolve"]\n' "$2" >"$folder/hosts.toml"`

func recycledAddress() Bug {
	const bound = 10 * time.Second
	return Bug{
		ID: "s29", Slug: "recycled-address", Title: "the address of a cache now belongs to the cache of another upstream",
		Reports: []string{"containerd#3734", "distribution-spec#66"},
		Symptom: "A node gets images of another upstream: its hosts.toml names an address that another cache has got since.",
		Fault:   "none: a worker gets a hosts.toml for gamma with the address of alpha's cache",
		Expectation: "The cache refuses requests for another upstream, and the node gets gamma's image within 10 s, although alpha " +
			"has an image of the same name.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			other, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			endpoint, err := r.endpoint(ctx, "alpha")
			if err != nil {
				return err
			}
			img, err := r.Push(ctx, "gamma", "--name", strings.TrimPrefix(other.Reference, host("alpha")+"/"))
			if err != nil {
				return err
			}
			r.Afterwards(func(ctx context.Context) error {
				_, err := r.Exec(ctx, "worker2", "rm", "-r", "/etc/containerd/certs.d/"+host("gamma"))
				return err
			})
			if _, err := r.Exec(ctx, "worker2", "bash", "-c", writeMirror, "bash", host("gamma"), endpoint); err != nil {
				return err
			}
			report, err := r.requirePull(ctx, img.Reference, "the pull succeeds", "--node", "worker2")
			if err != nil {
				return err
			}
			if err := r.Require("the image is gamma's", report.Digest == img.Digest, "%s, alpha has %s", report.Digest, other.Digest); err != nil {
				return err
			}
			if err := r.Require("the node asked alpha's cache first", report.Total.Fallbacks == 1, "%s", report.Verdict); err != nil {
				return err
			}
			return r.Within(fmt.Sprintf("the pull past %s", endpoint), Slowest(report), bound)
		},
	}
}
