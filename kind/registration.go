package kind

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/yaml"
)

// readRegistration reads the ControllerRegistration that operators apply, one of the documents of registrationFile.
// Unknown fields are an error.
func readRegistration(root string) (*gardencorev1beta1.ControllerRegistration, error) {
	path := filepath.Join(root, registrationFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the registration of the extension: %w", err)
	}
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		registration := &gardencorev1beta1.ControllerRegistration{}
		if err := yaml.Unmarshal(document, registration); err != nil {
			return nil, fmt.Errorf("decode %s: %w", path, err)
		}
		if registration.Kind != "ControllerRegistration" {
			continue
		}
		if err := yaml.UnmarshalStrict(document, registration); err != nil {
			return nil, fmt.Errorf("decode the ControllerRegistration of %s: %w", path, err)
		}
		return registration, nil
	}
	return nil, fmt.Errorf("%s holds no ControllerRegistration", path)
}
