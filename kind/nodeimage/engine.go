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

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// loaded reports whether the image is in the Docker Engine.
func loaded(ctx context.Context, ref string) (bool, error) {
	_, err := command.Output(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", ref)
	if err == nil {
		return true, nil
	}
	var failed *exec.RunError
	if errors.As(err, &failed) && strings.Contains(strings.ToLower(string(failed.Output)), "no such image") {
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
	err = feed(ctx, exec.CommandContext(ctx, "docker", "load", "--quiet"), func(w io.Writer) error { return tarball.Write(tag, image, w) })
	if err != nil {
		return fmt.Errorf("loading the node image %s into the Docker Engine: %w", ref, err)
	}
	return nil
}
