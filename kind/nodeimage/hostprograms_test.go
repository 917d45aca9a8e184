package nodeimage

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsFromCache: built programs are found while another build holds the lock, and without
// an engine or a compiler.
func TestProgramsFromCache(t *testing.T) {
	o := Options{CacheDir: t.TempDir()}
	_, plan, err := o.plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plan.compilations {
		if c.name == "kubernetes" {
			write(t, filepath.Join(o.CacheDir, c.entry, "etcd"), "x")
		}
	}
	open(t, o.CacheDir) // another build
	paths, err := Programs(t.Context(), o, "etcd", "kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if got := paths[name]; filepath.Base(got) != name || !strings.HasPrefix(got, o.CacheDir+"/programs-kubernetes-") {
			t.Errorf("%s is at %q", name, got)
		}
	}
	if len(paths) != 2 {
		t.Errorf("also found %v", paths)
	}
}

func TestProgramsUnknown(t *testing.T) {
	_, err := Programs(t.Context(), Options{CacheDir: t.TempDir()}, "etcd", "kube-scribe")
	if err == nil || !strings.Contains(err.Error(), "kube-scribe") {
		t.Errorf("error %v, want it to name the program", err)
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
	if got := strings.Join(names, " "); got != "runc kubernetes" {
		t.Errorf("compiles %s, want only what the programs need", got)
	}
}
