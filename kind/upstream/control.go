package upstream

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

// controlTimeout bounds reading and replacing a file in a container.
const controlTimeout = 20 * time.Second

// SetECR makes the upstream a private registry of Amazon ECR from the next request on, and revokes
// the tokens of an ECR with other values. The upstream serves the API at
// api.ecr.<region>.amazonaws.com, which must be one of Options.Aliases. Push needs no token.
func (r *Registry) SetECR(ctx context.Context, access server.ECR) error {
	content, err := access.Encode()
	if err == nil {
		err = r.exec(ctx, content, upstreamProgram, "replace-ecr")
	}
	if err != nil {
		return fmt.Errorf("ECR of upstream %s: %w", r.host, err)
	}
	return nil
}

// exec runs a program in the container.
func (i *instance) exec(ctx context.Context, stdin []byte, argv ...string) error {
	ctx, cancel := progress.Within(ctx, controlTimeout, "not done")
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", append([]string{"exec", "--interactive", i.name}, argv...)...)
	_, err := command.Run(ctx, cmd.SetStdin(bytes.NewReader(stdin)))
	return err
}

// SetFaults replaces the faults, from the next request on. Delays of removed faults end.
func (r *Registry) SetFaults(ctx context.Context, all ...spec.Fault) error {
	content, err := spec.Encode(all)
	if err == nil {
		err = r.exec(ctx, content, upstreamProgram, "replace-faults")
	}
	if err != nil {
		return fmt.Errorf("faults of upstream %s: %w", r.host, err)
	}
	return nil
}

// Faults returns the faults that any process has set with SetFaults and that have not expired.
func (r *Registry) Faults(ctx context.Context) ([]spec.Fault, error) {
	content, err := r.readFile(ctx, server.FaultsFile)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("faults of upstream %s: %w", r.host, err)
	}
	all, err := spec.Decode(content)
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", r.host, err)
	}
	return spec.Active(all, time.Now()), nil
}

// readFile returns the content of a file in the container. The container need not run.
func (i *instance) readFile(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	copied, err := i.docker.CopyFromContainer(ctx, i.id, client.CopyFromContainerOptions{SourcePath: path})
	if err != nil {
		return nil, err
	}
	defer copied.Content.Close()
	archive := tar.NewReader(copied.Content)
	if _, err := archive.Next(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return io.ReadAll(io.LimitReader(archive, 1<<20))
}
