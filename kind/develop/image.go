package develop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// ImageBuild is the input of BuildImage.
type ImageBuild struct {
	Name      string // one of the extension's images
	Reference string // the name of the image in the Docker Engine: a repository with a tag
	// Debug makes the image suitable for a debugger.
	Debug bool
}

// BuildImage builds an image from the sources, loads it into the Docker Engine under its reference,
// and then onto the nodes that may run it. It returns the image's name on the nodes: the
// repository, with the engine's image ID as tag. Skaffold does the same for images that it does not
// push. The testbed must be attached.
func BuildImage(ctx context.Context, t *kind.Testbed, wanted ImageBuild) (string, error) {
	tag, err := name.NewTag(wanted.Reference, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("reference of image %s: %w", wanted.Name, err)
	}
	i := slices.IndexFunc(t.Extension.Images, func(i kind.ExtensionImage) bool { return i.Name == wanted.Name })
	if i < 0 {
		return "", fmt.Errorf("unknown image %q, use one of %s", wanted.Name, strings.Join(t.Extension.AllImages(), ", "))
	}
	binary := t.Extension.Images[i].Binary
	binary.Debug = wanted.Debug
	var built image.Built
	err = progress.InOrder(ctx,
		t.Step("build "+wanted.Name, func(ctx context.Context) error {
			all, err := t.Build(ctx, binary)
			if err != nil {
				return err
			}
			built = all[0]
			built.Ref = wanted.Reference
			if built.Ref, err = loadIntoEngine(ctx, built, tag.Repository.Name()); err != nil {
				return fmt.Errorf("load image %s into the Docker Engine: %w", wanted.Name, err)
			}
			progress.Note(ctx, "%s", built.Ref)
			return nil
		}),
		t.Step("on the nodes", func(ctx context.Context) error {
			return image.Load(ctx, nodesOf(t, t.Extension.Images[i]), []image.Built{built})
		}),
	)
	return built.Ref, err
}

// nodesOf returns the nodes that may run the image.
func nodesOf(t *kind.Testbed, built kind.ExtensionImage) []*cluster.Node {
	var nodes []*cluster.Node
	if built.OnSeed {
		nodes = t.Seed.Nodes()
	}
	if built.OnShoot {
		nodes = slices.Concat(nodes, t.Shoot.Nodes())
	}
	return nodes
}

// loadIntoEngine loads the image into the Docker Engine, and returns repository:<image ID>.
func loadIntoEngine(ctx context.Context, built image.Built, repository string) (string, error) {
	packed := image.Archive([]image.Built{built})
	defer packed.Close()
	if _, err := command.Run(ctx, exec.CommandContext(ctx, "docker", "load", "--quiet").SetStdin(packed)); err != nil {
		return "", err
	}
	id, err := command.Output(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", built.Ref)
	if err != nil {
		return "", err
	}
	return repository + ":" + strings.TrimPrefix(strings.TrimSpace(id), "sha256:"), nil
}

// Validate checks the reference, which must have a registry and a tag. It does not check Name.
func (b ImageBuild) Validate() error {
	const want = "want a registry, repository and tag, for example registry-cache.testbed/extension:v1"
	if b.Reference == "" {
		return errors.New("required; " + want)
	}
	if _, err := name.NewTag(b.Reference, name.StrictValidation); err != nil {
		return fmt.Errorf("%w; %s", err, want)
	}
	return nil
}
