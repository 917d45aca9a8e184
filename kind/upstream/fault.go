package upstream

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

// faultsTimeout bounds reading and replacing the faults in a container.
const faultsTimeout = 20 * time.Second

// SetFaults replaces the faults from the next request on. Requests delayed by a removed fault
// continue.
func (r *Registry) SetFaults(ctx context.Context, all ...spec.Fault) error {
	content, err := spec.Encode(all)
	if err != nil {
		return fmt.Errorf("faults of upstream %s: %w", r.host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, faultsTimeout)
	defer cancel()
	if err := r.exec(ctx, content, upstreamProgram, "replace-faults"); err != nil {
		return fmt.Errorf("faults of upstream %s: %w", r.host, err)
	}
	return nil
}

// Faults returns the faults that any process has set with SetFaults and that have not expired.
func (r *Registry) Faults(ctx context.Context) ([]spec.Fault, error) {
	ctx, cancel := context.WithTimeout(ctx, faultsTimeout)
	defer cancel()
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

// Certificate returns the certificate, in PEM, that HTTPS clients get if there is no fault.
func (r *Registry) Certificate(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, faultsTimeout)
	defer cancel()
	content, err := r.readFile(ctx, server.Certificate)
	if err != nil {
		return nil, fmt.Errorf("certificate of upstream %s: %w", r.host, err)
	}
	return content, nil
}

// readFile returns a file of the container, which need not run.
func (i *instance) readFile(ctx context.Context, path string) ([]byte, error) {
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
