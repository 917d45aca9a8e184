package matrix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/utils/validation/kubernetesversion"
	"golang.org/x/mod/semver"

	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// TestVersionsPage: docs/versions.md has a row for each file in the folder versions, and no other,
// and says which versions of Kubernetes Gardener supports.
func TestVersionsPage(t *testing.T) {
	page := readFile(t, "../../docs/versions.md")
	var rows, want []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d\.\d+) \| (\d\.\d+) \|`).FindAllStringSubmatch(page, -1) {
		rows = append(rows, row[1]+" "+row[2])
	}
	for _, file := range filesIn(t, "versions") {
		config, err := configuration.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "kubernetes-"+config.Shoot.KubernetesVersion+".yaml") {
			t.Errorf("%s is for Kubernetes %s", file, config.Shoot.KubernetesVersion)
		}
		want = append(want, config.Shoot.KubernetesVersion+" "+config.Shoot.Containerd.Version)
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the page has rows for %q, want %q", rows, want)
	}
	supported := kubernetesversion.SupportedVersions
	sentence := fmt.Sprintf("Gardener %s supports Kubernetes %s to %s,", semver.MajorMinor(gardener.Version)[1:], supported[0], supported[len(supported)-1])
	if !strings.Contains(page, sentence) {
		t.Errorf("the page does not say %q", sentence)
	}
}
