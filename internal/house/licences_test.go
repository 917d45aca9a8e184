package house

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// permitted are the licences that linked modules may have, by SPDX identifier. Their conditions are
// those of Apache-2.0, or concern changes of the module alone.
var permitted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "Unlicense"}

// TestLicences: THIRD-PARTY.txt lists every module whose code is in a published image, with its
// licence, and all licences are permitted.
func TestLicences(t *testing.T) {
	t.Parallel()
	folders := map[string]string{}
	for _, architecture := range []string{"amd64", "arm64"} {
		command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}",
			"./cmd/registry-cache", "./cmd/registry-cache-admission", "./cmd/registry-cache-extension")
		command.Dir, command.Env = root(t), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
		output, err := command.Output()
		if err != nil {
			t.Fatalf("list the linked modules: %v", err)
		}
		for line := range strings.Lines(string(output)) {
			if module, folder, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				folders[module] = folder
			}
		}
	}
	var lines []string
	for module, folder := range folders {
		found, err := licences(folder)
		if err != nil {
			t.Errorf("%s: %v", module, err)
		}
		for _, licence := range found {
			if !slices.Contains(permitted, licence) {
				t.Errorf("%s has the licence %s", module, licence)
			}
		}
		lines = append(lines, module+" "+strings.Join(found, " AND ")+"\n")
	}
	slices.Sort(lines)
	golden.Compare(t, "../../../THIRD-PARTY.txt", "The modules that are linked into the published images, and their licences. Written by a test: make golden.\n\n"+strings.Join(lines, ""))
}

// licenceFile matches names of files with licences of code. LICENSE.docs is that of documentation.
var licenceFile = regexp.MustCompile(`^(LICENSE|COPYING)(\.(md|txt|BSD|MPL-2\.0|libyaml))?$`)

// licences returns the SPDX identifiers of the licences in a module's folder.
func licences(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < 75 { // the limit of pkg.go.dev
			return nil, fmt.Errorf("%s in %s is no known licence", entry.Name(), folder)
		}
		for _, match := range coverage.Match {
			if !match.IsURL {
				found = append(found, match.ID)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s contains no licence", folder)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
