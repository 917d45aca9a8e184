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

// permitted are the licenses that linked modules may have, by SPDX identifier. Their conditions are
// those of Apache-2.0, or concern changes of the module alone.
var permitted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense"}

// TestLicenses: THIRD-PARTY.txt lists every module whose code is in a published image, with its
// license, and all licenses are permitted.
func TestLicenses(t *testing.T) {
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
		found, err := licenses(folder)
		if err != nil {
			t.Errorf("%s: %v", module, err)
		}
		for _, license := range found {
			if !slices.Contains(permitted, license) {
				t.Errorf("%s has the license %s", module, license)
			}
		}
		lines = append(lines, module+" "+strings.Join(found, " AND ")+"\n")
	}
	slices.Sort(lines)
	golden.Compare(t, "../../../THIRD-PARTY.txt", "The modules that are linked into the published images, and their licenses. Written by a test: make golden.\n\n"+strings.Join(lines, ""))
}

// licenseFile matches names of files with licenses of code. LICENSE.docs is that of documentation.
var licenseFile = regexp.MustCompile(`^(LICENSE|COPYING)(\.(md|txt|BSD|MPL-2\.0|libyaml))?$`)

// licenses returns the SPDX identifiers of the licenses in a module's folder.
func licenses(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < 75 { // the limit of pkg.go.dev
			return nil, fmt.Errorf("%s in %s is no known license", entry.Name(), folder)
		}
		for _, match := range coverage.Match {
			if !match.IsURL {
				found = append(found, match.ID)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s contains no license", folder)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
