package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxBytes is the maximum size of a file. It is well above the largest object that etcd accepts.
const maxBytes = 4 << 20

// Manifest is the content of one file.
type Manifest struct {
	Shoot *gardencorev1beta1.Shoot // without defaults, and not validated
	// Secrets are in the namespace of the Shoot. As in an API server, stringData is merged into data.
	Secrets []*corev1.Secret
}

// decoder decodes the kinds that a file may contain. It rejects unknown and duplicate fields.
var decoder = newDecoder()

func newDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(gardencorev1beta1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// Read reads YAML or JSON documents: exactly one Shoot (core.gardener.cloud/v1beta1) and Secrets of
// its namespace. Other kinds and unknown or duplicate fields are errors. The extension, not Read,
// checks a providerConfig. Errors contain the name of the input, but never quote a Secret.
func Read(name string, content io.Reader) (*Manifest, error) {
	limited := &io.LimitedReader{R: content, N: maxBytes + 1}
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(limited))
	read := &Manifest{}
	for number := 1; ; number++ {
		document, err := documents.Read()
		if limited.N <= 0 {
			return nil, fmt.Errorf("%s is longer than %d MiB", name, maxBytes>>20)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if err := read.add(document); err != nil {
			return nil, fmt.Errorf("document %d of %s: %w", number, name, err)
		}
	}
	if read.Shoot == nil {
		return nil, fmt.Errorf("%s has no Shoot (apiVersion %s)", name, gardencorev1beta1.SchemeGroupVersion)
	}
	if err := read.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return read, nil
}

// add adds one document. It skips empty documents and those that contain only comments.
func (m *Manifest) add(document []byte) error {
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return fmt.Errorf("not YAML: %w", err)
	}
	if bytes.Equal(asJSON, []byte("null")) {
		return nil
	}
	object, _, err := decoder.Decode(document, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err), runtime.IsMissingKind(err), runtime.IsMissingVersion(err):
		return fmt.Errorf("want a Shoot of apiVersion %s or a Secret: %w", gardencorev1beta1.SchemeGroupVersion, err)
	case err != nil:
		if strict, ok := runtime.AsStrictDecodingError(err); ok {
			return utilerrors.NewAggregate(strict.Errors())
		}
		return err
	}
	switch object := object.(type) {
	case *gardencorev1beta1.Shoot:
		if m.Shoot != nil {
			return fmt.Errorf("a second Shoot, %s: the testbed has only one", object.Name)
		}
		m.Shoot = object
	case *corev1.Secret:
		m.Secrets = append(m.Secrets, mergeStringData(object))
	default:
		return fmt.Errorf("want a Shoot or a Secret, not a %s", object.GetObjectKind().GroupVersionKind().Kind)
	}
	return nil
}

// check validates the Secrets against the Shoot.
func (m *Manifest) check() error {
	names := map[string]bool{}
	for _, secret := range m.Secrets {
		switch {
		case secret.Name == "":
			return errors.New("a Secret has no metadata.name")
		case names[secret.Name]:
			return fmt.Errorf("secret %s appears twice", secret.Name)
		case secret.Namespace != m.Shoot.Namespace:
			return fmt.Errorf("secret %s is in namespace %q, the Shoot in %q: a Shoot can only refer to Secrets of its own namespace",
				secret.Name, secret.Namespace, m.Shoot.Namespace)
		}
		names[secret.Name] = true
	}
	return nil
}

// mergeStringData merges stringData into data, as the API server does.
func mergeStringData(secret *corev1.Secret) *corev1.Secret {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	return secret
}
