package examples

import (
	"embed"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/yaml"
)

// Files contains the examples for operators and, in ShootsFolder, the examples for Shoot owners.
//
//go:embed *.yaml shoots/*.yaml
var Files embed.FS

// ShootsFolder is the folder of the Shoots in Files. Each file contains a Shoot and its Secrets.
const ShootsFolder = "shoots"

const registrationFile = "controller-registration.yaml"

// ControllerRegistration returns the registration in examples/controller-registration.yaml.
func ControllerRegistration() (*gardencorev1beta1.ControllerRegistration, error) {
	content, err := Files.ReadFile(registrationFile)
	if err != nil {
		return nil, fmt.Errorf("read the example: %w", err)
	}
	registration := &gardencorev1beta1.ControllerRegistration{}
	if err := yaml.UnmarshalStrict(content, registration); err != nil {
		return nil, fmt.Errorf("decode %s: %w", registrationFile, err)
	}
	return registration, nil
}
