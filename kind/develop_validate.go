package kind

import (
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
)

// Validate returns an error for a reference under which the Docker Engine cannot know the image: one that is missing, is no reference, or
// leaves registry or tag open. It asks nothing of a testbed. That there is an image of that name is not looked at.
func (b ImageBuild) Validate() error {
	const want = "want what the Docker Engine calls the image: registry, repository and tag, for example registry-cache.testbed/extension:v1"
	if b.Reference == "" {
		return errors.New("required; " + want)
	}
	if _, err := name.NewTag(b.Reference, name.StrictValidation); err != nil {
		return fmt.Errorf("%w; %s", err, want)
	}
	return nil
}
