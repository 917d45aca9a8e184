package develop

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

func TestBuildImageRefusesBeforeItBuilds(t *testing.T) {
	testbed, err := kind.New(kind.Options{Extension: kind.Extension{Images: []kind.ExtensionImage{{Binary: image.Binary{Name: "one"}}, {Binary: image.Binary{Name: "two"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = BuildImage(t.Context(), testbed, ImageBuild{Name: kind.ImageResourceManager})
	if err == nil || !strings.Contains(err.Error(), "use one of one, two") {
		t.Errorf("error %v", err)
	}
}
