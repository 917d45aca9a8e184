package nodeimage

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/gardener-extensions/registry-cache/kind/configuration"
)

func TestProgramNames(t *testing.T) {
	tests := []struct {
		program     program
		file, title string
	}{
		{program{pkg: "k8s.io/kubernetes/cmd/kubelet"}, "kubelet", "kubelet"},
		{program{pkg: "go.etcd.io/etcd/server/v3", name: "etcd"}, "server", "etcd"},
		{program{pkg: "go.etcd.io/etcd/etcdctl/v3"}, "etcdctl", "etcdctl"},
		{program{pkg: "github.com/containerd/containerd/v2/cmd/ctr"}, "ctr", "ctr"},
		{program{pkg: "./coredns"}, "coredns", "coredns"},
	}
	for _, tt := range tests {
		t.Run(tt.program.pkg, func(t *testing.T) {
			if file, title := tt.program.file(), tt.program.title(); file != tt.file || title != tt.title {
				t.Errorf("file %q, title %q, want %q, %q", file, title, tt.file, tt.title)
			}
		})
	}
}

func TestLinkerFlags(t *testing.T) {
	pinned := map[string]string{"k8s.io/kubernetes": "v1.36.4", "sigs.k8s.io/cri-tools": "v1.36.0", "github.com/opencontainers/runc": "v1.4.3"}
	tests := []struct {
		name        string
		compilation compilation
		want        string
		err         string
	}{
		{"kubernetes", kubernetesPrograms, "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.4 -X k8s.io/component-base/version.gitMajor=1 " +
			"-X k8s.io/component-base/version.gitMinor=36", ""},
		{"tools", nodeTools, "-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=v1.36.0", ""},
		{"runc", runcProgram, "-s -w -extldflags -static -X main.version=1.4.3", ""},
		{"not pinned", localPathProgram, "", "modules/localpath/go.mod does not require github.com/rancher/local-path-provisioner"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.compilation.linkerFlags(pinned)
			if got != tt.want || (err == nil) != (tt.err == "") || (err != nil && err.Error() != tt.err) {
				t.Errorf("got %q, %v\nwant %q, %s", got, err, tt.want, tt.err)
			}
		})
	}
}

// TestProgramsAreToolsOfTheirModule keeps the programs in sync with the tool lines of the go.mod
// files.
func TestProgramsAreToolsOfTheirModule(t *testing.T) {
	built := map[string][]string{}
	var all []compilation
	for _, from := range allFolders() {
		all = append(all, from.compilations()...)
	}
	for _, c := range all {
		for _, p := range c.programs {
			if strings.HasPrefix(p.pkg, "./") {
				if _, err := os.Stat(filepath.Join("modules", c.module, p.pkg, "main.go")); err != nil {
					t.Errorf("program %s: %v", p.pkg, err)
				}
				continue
			}
			built[c.module] = append(built[c.module], p.pkg)
		}
	}
	for module, packages := range built {
		var tools []string
		for _, tool := range goMod(t, module).Tool {
			tools = append(tools, tool.Path)
		}
		slices.Sort(packages)
		slices.Sort(tools)
		if packages = slices.Compact(packages); !slices.Equal(packages, tools) {
			t.Errorf("module %s:\nprograms %v\ntools    %v", module, packages, tools)
		}
	}
}

// TestSharedModules: a module that is also in the repository's go.mod has the same version, so that
// Go's build cache shares its packages. containerd keeps the versions of its own release.
func TestSharedModules(t *testing.T) {
	shared := map[string]string{}
	for _, required := range readGoMod(t, filepath.Join("..", "..", "go.mod")).Require {
		shared[required.Mod.Path] = required.Mod.Version
	}
	for _, module := range []string{"kubernetes", "localpath"} {
		for _, required := range goMod(t, module).Require {
			if want := shared[required.Mod.Path]; want != "" && want != required.Mod.Version {
				t.Errorf("module %s: %s, the repository has %s; run there: go get %s@%s && go mod tidy",
					module, required.Mod, want, required.Mod.Path, want)
			}
		}
	}
}

// allFolders returns folders with each version of Kubernetes and containerd at least once.
func allFolders() []folders {
	var all []folders
	for _, folder := range kubernetesFolders {
		all = append(all, folders{folder, containerdFolders[""]})
	}
	for _, folder := range containerdFolders {
		all = append(all, folders{kubernetesFolders[""], folder})
	}
	return all
}

func goMod(t *testing.T, module string) *modfile.File {
	t.Helper()
	return readGoMod(t, filepath.Join("modules", module, "go.mod"))
}

func readGoMod(t *testing.T, name string) *modfile.File {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOldContainerd checks that the old containerd is older than the first one with dial_timeout.
func TestOldContainerd(t *testing.T) {
	for _, required := range goMod(t, containerdFolders["2.0"]).Require {
		if required.Mod.Path == "github.com/containerd/containerd/v2" {
			if semver.Compare(required.Mod.Version, "v2.0.7") >= 0 {
				t.Errorf("%s knows dial_timeout", required.Mod)
			}
			return
		}
	}
	t.Error("containerd is not pinned")
}

// pinnedIn returns the version of the module at path that a folder below modules/ pins.
func pinnedIn(t *testing.T, folder, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("modules", folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := pinnedVersions(folder, data)
	if err != nil {
		t.Fatal(err)
	}
	return pinned[path]
}

// TestFoldersPinTheirVersion checks that folders pin the minor versions that select them.
func TestFoldersPinTheirVersion(t *testing.T) {
	for version, folder := range kubernetesFolders {
		if pinned := pinnedIn(t, folder, kubernetesModule); version != "" && semver.MajorMinor(pinned) != "v"+version {
			t.Errorf("folder %s for %s pins %s", folder, version, pinned)
		}
	}
	for version, folder := range containerdFolders {
		if pinned := pinnedIn(t, folder, containerdPrograms(folder).stamps[0].module); version != "" && semver.MajorMinor(pinned) != "v"+version {
			t.Errorf("folder %s for %s pins %s", folder, version, pinned)
		}
	}
	if pinned := pinnedIn(t, "localpath", localPathModule); !strings.HasSuffix(localPathImage, ":"+pinned) {
		t.Errorf("the image is %s, but folder localpath pins %s", localPathImage, pinned)
	}
}

// TestVersionsPage: docs/versions.md lists the versions that the folders pin, and no others.
func TestVersionsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/versions.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, want, containerd []string
	for _, row := range regexp.MustCompile(`(?m)^\| (Kubernetes|containerd) \| (\S+) \| (\S+) \|`).FindAllSubmatch(page, -1) {
		listed = append(listed, fmt.Sprintf("%s %s v%s", row[1], row[2], row[3]))
	}
	for _, version := range slices.Sorted(maps.Keys(kubernetesFolders))[1:] { // without the default
		want = append(want, "Kubernetes "+version+" "+pinnedIn(t, kubernetesFolders[version], kubernetesModule))
	}
	for _, version := range slices.Sorted(maps.Keys(containerdFolders))[1:] {
		folder := containerdFolders[version]
		pinned := pinnedIn(t, folder, containerdPrograms(folder).stamps[0].module)
		want, containerd = append(want, "containerd "+version+" "+pinned), append(containerd, pinned[1:])
	}
	if !slices.Equal(listed, want) {
		t.Errorf("the page lists %q, want %q", listed, want)
	}
	if header := "\n| | " + strings.Join(containerd, " | ") + " |\n"; !strings.Contains(string(page), header) {
		t.Errorf("no table of the page has the header %q", header)
	}
}

// TestStagingIsPinned checks the replace lines: without one, a staging module resolves to v0.0.0,
// which does not exist.
func TestStagingIsPinned(t *testing.T) {
	for _, folder := range kubernetesFolders {
		file := goMod(t, folder)
		staging := "v0" + strings.TrimPrefix(pinnedIn(t, folder, kubernetesModule), "v1")
		for _, replace := range file.Replace {
			if replace.New.Version != staging {
				t.Errorf("%s: %s is replaced by version %s, want %s", folder, replace.Old.Path, replace.New.Version, staging)
			}
		}
		if len(file.Replace) < 25 {
			t.Errorf("%s: %d staging modules are replaced", folder, len(file.Replace))
		}
	}
}

func TestJobs(t *testing.T) {
	const gib = 1 << 30
	tests := []struct {
		name   string
		cpus   int
		memory uint64
		want   int
	}{
		{"enough memory", 2, 24 * gib, 2},
		{"many CPUs, little memory", 16, 8 * gib, 4},
		{"less than one program takes", 4, gib, 1},
		{"memory not known", 4, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := jobs(tt.cpus, tt.memory); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestBuildArguments(t *testing.T) {
	got := strings.Join(runcProgram.arguments("-s -w", "/out/", 2), " ")
	if want := "build -p 2 -o /out/ -ldflags -s -w -tags seccomp,netgo,osusergo github.com/opencontainers/runc"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRun compiles a small module with a program that has another name in the image.
func TestRun(t *testing.T) {
	modules := t.TempDir()
	write(t, filepath.Join(modules, "small/go.mod"), "module small\n\ngo 1.26\n")
	write(t, filepath.Join(modules, "small/server/main.go"), "package main\n\nfunc main() {}\n")
	c := compilation{name: "small", module: "small", programs: []program{{pkg: "./server", name: "etcd"}}}
	target := filepath.Join(t.TempDir(), "programs")
	if err := c.run(t.Context(), modules, "-s -w", target); err != nil {
		t.Fatal(err)
	}
	if !present(filepath.Join(target, "etcd")) || present(filepath.Join(target, "server")) {
		t.Error("the program does not have the name of the image")
	}

	write(t, filepath.Join(modules, "small/server/main.go"), "package main\n\nfunc main() { undefined() }\n")
	err := c.run(t.Context(), modules, "-s -w", target)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("the error does not say why: %v", err)
	}
}

// TestProgramsFromCache: built programs are found while another build holds the lock, and without
// an engine or a compiler.
func TestProgramsFromCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	folder, err := cacheFolder()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{}
	_, plan, err := o.plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plan.compilations {
		if c.name == "control-plane" || c.name == "etcd" {
			write(t, filepath.Join(folder, c.entry, "program"), "x")
		}
	}
	open(t, folder) // another build
	paths, err := Programs(t.Context(), o, "etcd", "kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if got := paths[name]; filepath.Base(got) != name || !strings.HasPrefix(got, folder+"/programs-") {
			t.Errorf("%s is at %q", name, got)
		}
	}
	if len(paths) != 2 {
		t.Errorf("also found %v", paths)
	}
}

func TestProgramsUnknown(t *testing.T) {
	_, err := Programs(t.Context(), Options{}, "etcd", "kube-scribe")
	if err == nil || !strings.Contains(err.Error(), "kube-scribe") {
		t.Errorf("error %v, want it to name the program", err)
	}
}

// TestConfigurableVersions: every version that testbed.yaml can choose has a folder.
func TestConfigurableVersions(t *testing.T) {
	for _, version := range configuration.KubernetesVersions {
		if kubernetesFolders[version] == "" {
			t.Errorf("no folder for Kubernetes %s", version)
		}
	}
	for _, version := range configuration.ContainerdVersions {
		if containerdFolders[version] == "" {
			t.Errorf("no folder for containerd %s", version)
		}
	}
}

func TestUnknownVersion(t *testing.T) {
	for _, o := range []Options{{Kubernetes: "1.20"}, {Containerd: "1.2"}} {
		if _, err := Ensure(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no node image has") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}

func TestCompilationsWith(t *testing.T) {
	all := mustPlan(t, realInputs(t)).compilations
	some, err := compilationsWith(all, []string{"etcd", "runc", "kube-apiserver"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range some {
		names = append(names, c.name)
	}
	if got := strings.Join(names, " "); got != "runc etcd control-plane" {
		t.Errorf("compiles %s, want only what the programs need", got)
	}
}
