package controller

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManifestsAreReproducible: the name of a ManagedResource's Secret contains a hash of its data.
// If a reused compressor produced other bytes, each reconciliation would write the ManagedResource.
func TestManifestsAreReproducible(t *testing.T) {
	manifests := func(lines int) []client.Object {
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, "line %d of %d\n", i*i, lines)
		}
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("lines-%d", lines)}
		return []client.Object{&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"text": text.String()}}}
	}
	encoded := map[int][]byte{}
	for range 3 {
		for _, lines := range []int{1, 20000, 300, 2, 5000} { // up to a multiple of the window
			data, err := encodeManifests(shootEncoder, manifests(lines))
			if err != nil {
				t.Fatal(err)
			}
			content := data[resourcesv1alpha1.CompressedDataKey]
			if before, again := encoded[lines]; again && !bytes.Equal(before, content) {
				t.Errorf("%d lines have other bytes than before", lines)
			}
			encoded[lines] = content
			text, err := io.ReadAll(brotli.NewReader(bytes.NewReader(content)))
			if want := fmt.Sprintf(`"name":"lines-%d"`, lines); err != nil || !strings.Contains(string(text), want) || strings.Count(string(text), "line ") != lines {
				t.Errorf("%d lines are decoded to %d bytes, error %v", lines, len(text), err)
			}
		}
	}
}
