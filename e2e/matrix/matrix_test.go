package matrix

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/configuration"
)

var (
	scenariosLine = regexp.MustCompile(`(?m)^# scenarios: \^\(([a-z0-9|-]+)\)\$$`)
	orderLine     = regexp.MustCompile(`(?m)^order=\(([^)]*)\)`)
	versionsLine  = regexp.MustCompile(`(?m)^\t@exec e2e/matrix/run versions/kubernetes-\{([^}]*)\}$`)
)

// TestFiles: each file is valid for `testbed up -f`, differs from the default, is in the list of
// the script "run" or of `make e2e-versions`, and names existing scenarios.
func TestFiles(t *testing.T) {
	files, versions := filesIn(t, "."), filesIn(t, "versions")
	order := strings.Fields(orderLine.FindStringSubmatch(readFile(t, "run"))[1])
	for _, minor := range strings.Split(versionsLine.FindStringSubmatch(readFile(t, "../../Makefile"))[1], ",") {
		order = append(order, "versions/kubernetes-"+minor)
	}
	if files = append(files, versions...); len(order) != len(files) {
		t.Errorf("the script run and the Makefile list %v, the folder has %v", order, files)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			config, err := configuration.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			if reflect.DeepEqual(configuration.Default(), config) {
				t.Error("the file is the default configuration")
			}
			if !slices.Contains(order, strings.TrimSuffix(file, ".yaml")) {
				t.Errorf("neither the script run nor the Makefile lists the file: %v", order)
			}
			line := scenariosLine.FindStringSubmatch(readFile(t, file))
			if line == nil {
				t.Fatal("the file has no line like `# scenarios: ^(a|b)$`")
			}
			known := scenarioNames(t)
			for _, name := range strings.Split(line[1], "|") {
				if !slices.Contains(known, name) {
					t.Errorf("there is no scenario %s", name)
				}
			}
		})
	}
}

// TestIssueIsCovered: the matrix and the default testbed cover each IP family, kube-proxy mode and
// pull mode of containerd, and both one and three workers.
func TestIssueIsCovered(t *testing.T) {
	seen := map[string]bool{}
	look := func(config *configuration.Testbed) {
		shoot := config.Shoot
		seen[string(shoot.IPFamily)], seen[string(shoot.KubeProxyMode)], seen[string(shoot.Containerd.Pull)] = true, true, true
		seen[strings.Repeat("w", *shoot.Workers)] = true
	}
	look(configuration.Default())
	for _, file := range filesIn(t, ".") {
		config, err := configuration.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		look(config)
	}
	for _, want := range []string{"ipv4", "ipv6", "dual", "nftables", "iptables", "local", "transfer", "w", "www"} {
		if !seen[want] {
			t.Errorf("nothing runs with %s", want)
		}
	}
}

// filesIn returns the paths of the files in a folder.
func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	return files
}

// scenarioNames returns the names of all scenarios. It reads them from the sources, because these
// are compiled only with the tag e2e.
func scenarioNames(t *testing.T) []string {
	t.Helper()
	sources, err := filepath.Glob("../*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, source := range sources {
		for _, found := range regexp.MustCompile(`rig\.New\("([a-z0-9-]+)",`).FindAllStringSubmatch(readFile(t, source), -1) {
			names = append(names, found[1])
		}
	}
	return names
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
