package nodeimage

import (
	"testing"
	"testing/fstest"
)

func TestHashDependsOnEveryInput(t *testing.T) {
	base := inputs{"a": "1", "b": "2"}
	tests := map[string]inputs{
		"another value":             {"a": "1", "b": "3"},
		"another name":              {"a": "1", "c": "2"},
		"an input more":             {"a": "1", "b": "2", "c": ""},
		"an input less":             {"a": "1"},
		"values swapped":            {"a": "2", "b": "1"},
		"a value that looks like b": {"a": "1\nb 2"},
	}
	for name, other := range tests {
		t.Run(name, func(t *testing.T) {
			if other.hash() == base.hash() {
				t.Errorf("%v and %v have the same hash", other, base)
			}
		})
	}
	if again := (inputs{"b": "2", "a": "1"}); again.hash() != base.hash() {
		t.Error("equal inputs have different hashes")
	}
}

func TestNewInputsReadsSourcesOfModules(t *testing.T) {
	modules := fstest.MapFS{
		"kubernetes/go.mod":          {Data: []byte("module m")},
		"kubernetes/go.sum":          {Data: []byte("sum")},
		"kubernetes/coredns/main.go": {Data: []byte("package main")},
		"kubernetes/README":          {Data: []byte("prose")},
	}
	in, err := newInputs(modules, "go1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"modules/kubernetes/go.mod", "modules/kubernetes/go.sum", "modules/kubernetes/coredns/main.go",
		"recipe/inputs.go", "recipe/rootfs.sh", inputToolchain, inputKind} {
		if in[name] == "" {
			t.Errorf("input %s is missing", name)
		}
	}
	for _, name := range []string{"modules/kubernetes/README", "recipe/inputs_test.go"} {
		if _, ok := in[name]; ok {
			t.Errorf("%s is an input, but the image does not depend on it", name)
		}
	}
}
