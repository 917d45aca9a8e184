package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/kind/pkg/exec"
)

// loaded tells whether the Docker Engine has the image.
func loaded(ctx context.Context, ref string) (bool, error) {
	err := exec.CommandContext(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", ref).Run()
	if err == nil {
		return true, nil
	}
	if run := exec.RunErrorForError(err); run != nil && strings.Contains(strings.ToLower(string(run.Output)), "no such image") {
		return false, nil
	}
	return false, fmt.Errorf("asking the Docker Engine for the node image %s: %w", ref, err)
}

// load streams the image to the Docker Engine.
func load(ctx context.Context, ref string, image v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := tarball.Write(tag, image, writer)
		written <- errors.Join(err, writer.CloseWithError(err))
	}()
	err = exec.CommandContext(ctx, "docker", "load", "--quiet").SetStdin(reader).Run()
	_ = reader.Close() // unblocks the writer when the command ended early
	if writeErr := <-written; err == nil {
		err = writeErr
	}
	if err != nil {
		return fmt.Errorf("loading the node image %s into the Docker Engine: %w", ref, err)
	}
	return nil
}
