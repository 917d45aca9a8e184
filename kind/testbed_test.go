package kind

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/configuration"
)

func TestNewValidatesPrefix(t *testing.T) {
	for _, tc := range []struct{ name, prefix, want string }{
		{"default", "", ""},
		{"a name", "field-bug-7", ""},
		{"upper case", "Mine", `prefix "Mine"`},
		{"dots", "a.b", `prefix "a.b"`},
		{"too long", strings.Repeat("x", 31), "longer than 30"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(Options{Prefix: tc.prefix})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestRepositoryRoot starts the search in folders of this and of other Go modules.
func TestRepositoryRoot(t *testing.T) {
	want, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{".", "..", "../tools/skaffold", "nodeimage/modules/kubernetes"} {
		t.Run(folder, func(t *testing.T) {
			t.Chdir(folder)
			if root, err := repositoryRoot(); root != want || err != nil {
				t.Errorf("%s, error %v; want %s", root, err, want)
			}
		})
	}
	t.Chdir(t.TempDir())
	if root, err := repositoryRoot(); err == nil {
		t.Errorf("outside of a repository: %s", root)
	}
}

func TestIPFamilies(t *testing.T) {
	config := configuration.Default()
	testbed, err := New(Options{Directory: t.TempDir(), Configuration: config})
	if err != nil {
		t.Fatal(err)
	}
	for family, want := range map[configuration.IPFamily][]gardencorev1beta1.IPFamily{
		configuration.IPv4:      {gardencorev1beta1.IPFamilyIPv4},
		configuration.IPv6:      {gardencorev1beta1.IPFamilyIPv6},
		configuration.DualStack: {gardencorev1beta1.IPFamilyIPv4, gardencorev1beta1.IPFamilyIPv6},
	} {
		config.Shoot.IPFamily = family
		if got := testbed.ipFamilies(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v", family, got)
		}
	}
}

// TestWithPlantedBug: only the shipped binaries are built with the bug.
func TestWithPlantedBug(t *testing.T) {
	testbed, err := New(Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	all, err := testbed.withPlantedBug(t.TempDir(), Binaries())
	if err != nil {
		t.Fatal(err)
	}
	for _, binary := range all {
		if binary.Overlay != "" {
			t.Errorf("%s is built with %s, want no bug", binary.Name, binary.Overlay)
		}
	}
	testbed.Planted = &PlantedBug{Name: "not-atomic", Overlay: func(string, string) (string, error) { return "not-atomic.json", nil }}
	if all, err = testbed.withPlantedBug(t.TempDir(), Binaries()); err != nil {
		t.Fatal(err)
	}
	built := map[string]bool{}
	for i, binary := range all {
		if built[binary.Name] = binary.Overlay != ""; built[binary.Name] {
			if binary.Overlay != "not-atomic.json" {
				t.Errorf("%s is built with %s", binary.Name, binary.Overlay)
			}
		}
		if Binaries()[i].Overlay != "" {
			t.Error("Binaries() was changed")
		}
	}
	if !built[ImageExtension] || !built[ImageCache] || built[ImageNodeAgent] || built[ImageResourceManager] {
		t.Errorf("built with the bug: %v", built)
	}
}
