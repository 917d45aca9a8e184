package upstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/upstream/server"
)

// Credentials are what a protected upstream expects from its clients in HTTP basic authentication.
type Credentials = server.Credentials

// credentialsTimeout bounds the replacement of the credentials file in a container.
const credentialsTimeout = 20 * time.Second

// SetCredentials makes a protected upstream accept only these credentials, from the next request
// on. Push uses the first ones. They are passed by standard input, so neither the description of
// the container nor its process list shows them. An open upstream stays open.
func (r *Registry) SetCredentials(ctx context.Context, first Credentials, more ...Credentials) error {
	all := append([]Credentials{first}, more...)
	for _, c := range all {
		if err := c.Validate(); err != nil {
			return fmt.Errorf("credentials of upstream %s: %w", r.host, err)
		}
	}
	content, err := server.EncodeCredentials(all...)
	if err != nil {
		return fmt.Errorf("credentials of upstream %s: %w", r.host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if err := r.exec(ctx, content, upstreamProgram, "replace-credentials"); err != nil {
		return fmt.Errorf("credentials of upstream %s: %w", r.host, err)
	}
	r.credentials = &first
	return nil
}

// exec runs a program in the container with this standard input.
func (i *instance) exec(ctx context.Context, stdin []byte, argv ...string) error {
	created, err := i.docker.ExecCreate(ctx, i.id, client.ExecCreateOptions{
		Cmd: argv, AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return fmt.Errorf("run %q: %w", argv, err)
	}
	attached, err := i.docker.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return fmt.Errorf("run %q: %w", argv, err)
	}
	defer attached.Close()
	// Reads and writes of the connection do not take a context.
	defer context.AfterFunc(ctx, attached.Close)()
	if _, err := attached.Conn.Write(stdin); err != nil {
		return fmt.Errorf("run %q: write its input: %w", argv, err)
	}
	if err := attached.CloseWrite(); err != nil {
		return fmt.Errorf("run %q: end its input: %w", argv, err)
	}
	var output bytes.Buffer
	if _, err := stdcopy.StdCopy(&output, &output, io.LimitReader(attached.Reader, 1<<16)); err != nil {
		return fmt.Errorf("run %q: read its output: %w", argv, err)
	}
	return i.exitCode(ctx, created.ID, argv, output.String())
}

func (i *instance) exitCode(ctx context.Context, exec string, argv []string, output string) error {
	ended, err := i.docker.ExecInspect(ctx, exec, client.ExecInspectOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("run %q: %w", argv, err)
	case ended.Running || ended.ExitCode != 0:
		return fmt.Errorf("run %q: exit code %d: %s", argv, ended.ExitCode, output)
	}
	return nil
}
