package pull

import (
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// PlanPush is for Push.
func PlanPush(t *kind.Testbed, options PushOptions) ([]string, error) {
	target, err := options.Target(t.Upstreams.Hosts(), "testbed/random")
	if err != nil {
		return nil, err
	}
	repository := target.Repository
	if options.Name == "" {
		repository = "testbed/<random>"
	}
	line := fmt.Sprintf("push an image of %d random layers of %d bytes as %s/%s:%s",
		target.Layers, target.LayerBytes, target.Host, repository, target.Tag)
	if options.Base != "" {
		line += ", on the layers of " + options.Base
	}
	return []string{line}, nil
}

// PlanPull is for Pull.
func PlanPull(t *kind.Testbed, options Options) ([]string, error) {
	plan, err := options.Plan(t.Upstreams.Hosts(), cluster.Names(t.Shoot.Workers()))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, batch := range plan.Batches {
		for _, node := range batch.Nodes {
			if options.Fresh {
				lines = append(lines, fmt.Sprintf("round %d, %s: remove the image, with all content that nothing else uses", batch.Round, node))
			}
			lines = append(lines, fmt.Sprintf("round %d, %s: crictl pull %s", batch.Round, node, plan.Image.Reference))
		}
	}
	return lines, nil
}
