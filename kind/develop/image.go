package develop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// ImageBuild is the input of BuildImage.
type ImageBuild struct {
	Name      string   // one of the extension's images
	Reference name.Tag // the name of the image in the Docker Engine
	Debug     bool     // makes the image suitable for a debugger
}

// BuildImage builds an image from the sources, loads it into the Docker Engine under its reference,
// and then onto the nodes that may run it. It returns the image's name on the nodes: the
// repository, with the engine's image ID as tag. Skaffold does the same for images that it does not
// push. The testbed must be attached.
func BuildImage(ctx context.Context, t *kind.Testbed, wanted ImageBuild) (string, error) {
	i := slices.IndexFunc(t.Extension.Images, func(i kind.ExtensionImage) bool { return i.Name == wanted.Name })
	if i < 0 {
		return "", fmt.Errorf("unknown image %q, use one of %s", wanted.Name, strings.Join(t.Extension.AllImages(), ", "))
	}
	binary := t.Extension.Images[i].Binary
	binary.Debug = wanted.Debug
	var built image.Built
	err := progress.InOrder(ctx,
		t.Step("build "+wanted.Name, func(ctx context.Context) error {
			all, err := t.Build(ctx, binary)
			if err != nil {
				return err
			}
			built = all[0]
			built.Ref = wanted.Reference.String()
			if built.Ref, err = loadIntoEngine(ctx, built, wanted.Reference.Repository.Name()); err != nil {
				return err
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
	if err := image.LoadIntoEngine(ctx, built); err != nil {
		return "", err
	}
	id, err := command.Output(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", built.Ref)
	if err != nil {
		return "", err
	}
	return repository + ":" + strings.TrimPrefix(strings.TrimSpace(id), "sha256:"), nil
}
