// Command publish pushes a release to an OCI registry: the images that `make images` built with
// their SBOMs, the Helm charts, and the component descriptor. It writes the objects that install
// the release: one file for a garden, one for gardener-operator. It prints both, and runs in the
// root of the repository.
//
// A published version never changes, unless it ends in -dev. Tags are set after everything else, so
// a run that failed has published nothing, and the next run continues.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// limit bounds a run with a registry that does not answer.
const limit = 15 * time.Minute

func main() { os.Exit(program.Main(newCommand)) }

// settings are the flags. root is the repository.
type settings struct{ registry, alias, root, images, out string }

func newCommand(streams program.Streams) *cobra.Command {
	s := settings{root: "."}
	cmd := &cobra.Command{
		Use: "publish --registry HOST/PATH", Short: "Push a release to an OCI registry", Args: program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), streams) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.registry, "registry", "", "where to push to, such as registry.example.org/gardener")
	flags.StringVar(&s.alias, "alias", "", "name of the registry in clusters (default: --registry)")
	flags.StringVar(&s.images, "images", "bin/images", "OCI layout with the images")
	flags.StringVar(&s.out, "out", "bin/published", "folder for the objects that install the release; it is replaced")
	return cmd
}

// run publishes the release. options are added to those for the registry.
func (s settings) run(ctx context.Context, streams program.Streams, options ...remote.Option) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := newRelease(s)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.out); err != nil {
		return fmt.Errorf("remove the files of an earlier run: %w", err)
	}
	if err := push(ctx, r.items, streams.Err, options...); err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return fmt.Errorf("create the folder for the files: %w", err)
	}
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(s.out, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("write the files: %w", err)
		}
	}
	fmt.Fprintf(streams.Err, "wrote %s\n", s.out)
	_, err = fmt.Fprint(streams.Out, r.files[gardenFile], "---\n", r.files[operatorFile])
	return err
}
