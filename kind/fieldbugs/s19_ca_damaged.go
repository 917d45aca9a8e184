package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// caDamaged is a damaged CA file on a node.
func caDamaged() Bug {
	const bound = 20 * time.Second
	return Bug{
		ID: "s19", Slug: "ca-file-damaged", Title: "the CA file of a mirror is damaged on a node",
		Reports: []string{"containerd#10027", "gardener#10810"},
		Symptom: "The node can pull no image of the upstream: containerd treats an unreadable CA file as an error and does " +
			"not ask the upstream.",
		Fault:       "none: the certificate in the file is damaged",
		Expectation: "A pull succeeds within 20 s without help: the node's unit restores its files.",
		Lane:        Full, Shoot: HTTPS,
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
			// sed prints what it has replaced: without that this would prove nothing.
			out, err = r.Exec(ctx, "worker2", "sed", "--in-place", "s/BEGIN CERTIFICATE/BEGIN GARBAGE/w /dev/stdout", file)
			if err != nil || !strings.Contains(out, "GARBAGE") {
				return errors.Join(err, fmt.Errorf("%s has no certificate", file))
			}
			if _, err := r.awaitPull(ctx, img, bound); err != nil {
				return err
			}
			return r.Soon(ctx, "the CA file is back", bound, func(ctx context.Context) (bool, string, error) {
				out, err := r.Exec(ctx, "worker2", "cat", file)
				return strings.Contains(out, "BEGIN CERTIFICATE") && !strings.Contains(out, "BEGIN GARBAGE"), out, err
			})
		},
	}
}

// caFile is the file that a hosts.toml names as ca.
func caFile(hosts string) string {
	for line := range strings.Lines(hosts) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.TrimSpace(key) == "ca" {
			return strings.Trim(strings.TrimSpace(value), `"[] `)
		}
	}
	return ""
}
