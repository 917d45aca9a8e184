package image

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Load loads images into containerd on the nodes, and skips those that a node has: references are
// content-addressed.
func Load(ctx context.Context, nodes []*cluster.Node, wanted []Built) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error {
			present, err := node.Exec(ctx, "ctr", "--namespace", "k8s.io", "images", "ls", "--quiet")
			if err != nil {
				return fmt.Errorf("list the images of %s: %w", node.Name(), err)
			}
			missing := missingImages(wanted, strings.Fields(present))
			if len(missing) == 0 {
				return nil
			}
			progress.Note(ctx, "%d on %s", len(missing), node.Name())
			packed := Archive(missing)
			defer packed.Close()
			return node.LoadImage(ctx, packed)
		})
	}
	return group.Wait()
}

// Archive returns a reader that packs images while it is read, so that archives of hundreds of
// megabytes for several nodes are never in memory. Close stops the packing.
func Archive(built []Built) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(WriteArchive(writer, built...)) }()
	return reader
}

// missingImages returns the wanted images whose reference is not present.
func missingImages(wanted []Built, present []string) []Built {
	return slices.DeleteFunc(slices.Clone(wanted), func(b Built) bool { return slices.Contains(present, b.Ref) })
}
