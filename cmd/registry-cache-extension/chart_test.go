package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// TestChartPassesKnownFlags reads what the chart renders to: an unknown flag there is a pod that crashes.
func TestChartPassesKnownFlags(t *testing.T) {
	for _, rendered := range []string{"minimal.yaml", "full.yaml"} {
		t.Run(rendered, func(t *testing.T) {
			args := deployment(t, "../../charts/testdata/registry-cache-extension/"+rendered).Spec.Template.Spec.Containers[0].Args
			if len(args) == 0 {
				t.Fatal("the chart passes no arguments")
			}
			if err := newCommand(program.Streams{}).ParseFlags(args); err != nil {
				t.Errorf("%v: %v", args, err)
			}
		})
	}
}

func deployment(t *testing.T, file string) *appsv1.Deployment {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no Deployment", file)
		}
		if err != nil {
			t.Fatal(err)
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Kind != "Deployment" {
			continue
		}
		result := &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict(document, result); err != nil {
			t.Fatal(err)
		}
		return result
	}
}
