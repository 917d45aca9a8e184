package main

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestExamplesAreValid validates every example of Shoots or caches in examples/, docs/ and the
// README.
func TestExamplesAreValid(t *testing.T) {
	found := 0
	for source, text := range examples(t) {
		t.Run(source, func(t *testing.T) {
			if isValid(t, text) {
				found++
			}
		})
	}
	if found < 10 {
		t.Errorf("only %d examples found", found)
	}
}

// isValid fails the test if the example is invalid, and returns whether it contains Shoots or
// caches at all.
func isValid(t *testing.T, text string) bool {
	t.Helper()
	var part struct {
		Kind   string         `json:"kind"`
		Spec   map[string]any `json:"spec"`
		Caches []any          `json:"caches"`
	}
	var list []any
	switch {
	case strings.Contains(text, "kind: Shoot\n") && strings.Contains(text, "workers:"):
		code, out, notes := validate(t, text, "-f", "-")
		if code != program.ExitFine {
			t.Errorf("exit code %d: %s%s", code, out, notes)
		}
	case yaml.Unmarshal([]byte(text), &list) == nil && strings.Contains(text, "upstream:"):
		validConfig(t, map[string]any{"caches": list})
	case yaml.Unmarshal([]byte(text), &part) != nil:
		return false
	case part.Spec["extensions"] != nil: // the relevant part of a Shoot
		validPart(t, part.Spec)
	case part.Caches != nil:
		validConfig(t, map[string]any{"caches": part.Caches})
	default:
		if strings.Contains(text, "upstream:") {
			t.Errorf("an example of a form that is not validated:\n%s", text)
		}
		return false
	}
	return true
}

func validPart(t *testing.T, spec map[string]any) {
	t.Helper()
	spec["provider"] = map[string]any{"workers": []any{map[string]any{"name": "w"}}}
	shoot, err := yaml.Marshal(map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": map[string]any{"name": "part"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, out, notes := validate(t, string(shoot), "-f", "-"); code != program.ExitFine {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
}

func validConfig(t *testing.T, config map[string]any) {
	t.Helper()
	config["apiVersion"], config["kind"] = v1alpha3.SchemeGroupVersion.String(), "RegistryConfig"
	raw, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := v1alpha3.DecodeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if errs := v1alpha3.Validate(decoded); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}
