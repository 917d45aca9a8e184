package examples

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// Files are the example files.
//
//go:embed *.yaml
var Files embed.FS

const registrationFile = "controller-registration.yaml"

var decoder = newDecoder()

func newDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(gardencorev1.AddToScheme(scheme))
	utilruntime.Must(gardencorev1beta1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// ControllerRegistration returns the registration of the extension in examples/controller-registration.yaml.
func ControllerRegistration() (*gardencorev1beta1.ControllerRegistration, error) {
	objects, err := decode(registrationFile)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if registration, ok := object.(*gardencorev1beta1.ControllerRegistration); ok {
			return registration, nil
		}
	}
	return nil, fmt.Errorf("%s has no ControllerRegistration", registrationFile)
}

// decode returns the objects of an example file. It is strict: an unknown field is an error.
func decode(name string) ([]runtime.Object, error) {
	content, err := Files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the example: %w", err)
	}
	var objects []runtime.Object
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting %s: %w", name, err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", name, err)
		}
		objects = append(objects, object)
	}
}
