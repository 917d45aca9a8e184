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
