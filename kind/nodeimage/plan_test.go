package nodeimage

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// realInputs returns this repository's inputs with a fixed toolchain and kind.
func realInputs(t *testing.T) inputs {
	t.Helper()
	in, err := newInputs(os.DirFS("modules"), "go1 linux/amd64", "v0")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func mustPlan(t *testing.T, in inputs) plan {
	t.Helper()
	p, err := newPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlanRebuildsWhatChanged: a changed input always changes the image, and only the parts that
// depend on it.
func TestPlanRebuildsWhatChanged(t *testing.T) {
	tests := []struct {
		name, input string
		parts       []string // prefixes of the parts that must be built again
	}{
		{"kubernetes' go.mod", "modules/kubernetes/go.mod", []string{"programs-kubernetes-", "programs-pause-"}},
		{"kubernetes' go.sum", "modules/kubernetes/go.sum", []string{"programs-kubernetes-"}},
		{"coredns", "modules/kubernetes/coredns/main.go", []string{"programs-kubernetes-"}},
		{"imagestore", "modules/containerd/imagestore/main.go", []string{"programs-containerd-", "programs-runc-"}},
		{"local-path-provisioner's go.mod", "modules/localpath/go.mod", []string{"programs-local-path-provisioner-"}},
		{"kind", inputKind, nil},
		{"the recipe", "recipe/assemble.go", nil},
		{"the toolchain", inputToolchain, []string{"programs-", "debian-"}},
	}
	before := mustPlan(t, realInputs(t))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := maps.Clone(realInputs(t))
			in[tt.input] += "\n// changed\n"
			after := mustPlan(t, in)
			if after.ref == before.ref {
				t.Error("the image kept its reference")
			}
			for i, entry := range after.entries() {
				rebuilt := entry != before.entries()[i]
				wanted := slices.ContainsFunc(tt.parts, func(p string) bool { return strings.HasPrefix(entry, p) })
				if rebuilt != wanted {
					t.Errorf("part %s: built again %t, want %t", entry, rebuilt, wanted)
				}
			}
		})
	}
}

func TestPlanNamesTheImage(t *testing.T) {
	p := mustPlan(t, realInputs(t))
	name, tag, _ := strings.Cut(p.ref, ":")
	if name != "registry-cache-testbed/node" || len(tag) != 16 {
		t.Errorf("reference %s, want registry-cache-testbed/node:<16 hex digits>", p.ref)
	}
	if again := mustPlan(t, realInputs(t)); again.ref != p.ref {
		t.Errorf("unchanged inputs: reference %s, then %s", p.ref, again.ref)
	}
}

func TestPlanLocatesEveryPart(t *testing.T) {
	p := mustPlan(t, realInputs(t))
	var used []string
	built, err := p.artifacts(func(entry string) (string, error) {
		used = append(used, entry)
		return "/cache/" + entry, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(used) != len(p.entries()) {
		t.Errorf("used %d parts of %d: the others would be removed as unused", len(used), len(p.entries()))
	}
	for _, c := range components() {
		for _, program := range c.programs {
			if !strings.HasPrefix(built.programs[program], "/cache/programs-") {
				t.Errorf("image %s: no program %s is built (%q)", c.name, program, built.programs[program])
			}
		}
		if c.tree != nil && built.trees[c.tree.name] == "" {
			t.Errorf("image %s: no file tree %s is built", c.name, c.tree.name)
		}
	}
	for _, program := range []string{"imagestore", "ctr", "kubeadm"} { // called by the build itself
		if built.programs[program] == "" {
			t.Errorf("program %s is not built", program)
		}
	}
}
