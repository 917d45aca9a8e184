package examples

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	deploymentFile = "controller-deployment.yaml"
	operatorFile   = "operator-extension.yaml"
)

var decoder = newDecoder()

func newDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, gardencorev1.AddToScheme, gardencorev1beta1.AddToScheme, operatorv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// TestRegistrationIsTheOnlyObject: ControllerRegistration returns the only object of its file.
func TestRegistrationIsTheOnlyObject(t *testing.T) {
	want, err := singleObject[*gardencorev1beta1.ControllerRegistration](registrationFile)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ControllerRegistration(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and error %v, want %+v", got, err, want)
	}
}

// singleObject returns the object of an example file that contains only one.
func singleObject[T runtime.Object](name string) (T, error) {
	var none T
	objects, err := decode(name)
	if err != nil {
		return none, err
	}
	if len(objects) != 1 {
		return none, fmt.Errorf("%s has %d objects, want 1", name, len(objects))
	}
	object, ok := objects[0].(T)
	if !ok {
		return none, fmt.Errorf("%s has a %T, want a %T", name, objects[0], none)
	}
	return object, nil
}

// decode decodes the objects of an example file. An unknown field is an error.
func decode(name string) ([]runtime.Object, error) {
	content, err := Files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the example: %w", err)
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
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		objects = append(objects, object)
	}
}
