package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxBytes is the most that a file may hold: etcd takes no object that comes near to it.
const maxBytes = 4 << 20

// Manifest is the content of one file.
type Manifest struct {
	// Shoot is as it is in the file: neither defaulted nor validated.
	Shoot *gardencorev1beta1.Shoot
	// Secrets are what the Shoot may refer to, each with its stringData moved to data, as an API server does.
	Secrets []*corev1.Secret
}

// decoder knows what a file may hold, and refuses fields that are not known or there twice.
var decoder = newDecoder()

func newDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(gardencorev1beta1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// Read reads YAML or JSON documents: exactly one Shoot (core.gardener.cloud/v1beta1), and Secrets of its namespace. It is
// strict: a field that is not known, or there twice, is an error with its path, and so is any other kind. What is inside of a
// providerConfig is the extension's to judge. name says in errors what was read; they never repeat what is in a Secret.
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
		return nil, fmt.Errorf("%s holds no Shoot (apiVersion %s)", name, gardencorev1beta1.SchemeGroupVersion)
	}
	if err := read.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return read, nil
}

// add adds one document; an empty one, or one of comments only, is passed over.
func (m *Manifest) add(document []byte) error {
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return fmt.Errorf("it is no YAML: %w", err)
	}
	if bytes.Equal(asJSON, []byte("null")) {
		return nil
	}
	object, _, err := decoder.Decode(document, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err), runtime.IsMissingKind(err), runtime.IsMissingVersion(err):
		return fmt.Errorf("want a Shoot of apiVersion %s or a Secret: %w", gardencorev1beta1.SchemeGroupVersion, err)
	case err != nil:
		return explain(err)
	}
	switch object := object.(type) {
	case *gardencorev1beta1.Shoot:
		if m.Shoot != nil {
			return fmt.Errorf("a second Shoot, %s: the testbed has one, give it one", object.Name)
		}
		m.Shoot = object
	case *corev1.Secret:
		m.Secrets = append(m.Secrets, stored(object))
	default:
		return fmt.Errorf("want a Shoot or a Secret, not a %s", object.GetObjectKind().GroupVersionKind().Kind)
	}
	return nil
}

// explain names the fields that strict decoding refused, without the words around them.
func explain(err error) error {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return err
	}
	var problems []string
	for _, problem := range strict.Errors() {
		problems = append(problems, problem.Error())
	}
	return errors.New(strings.Join(problems, ", "))
}

// check holds the Secrets against the Shoot.
func (m *Manifest) check() error {
	names := map[string]bool{}
	for _, secret := range m.Secrets {
		switch {
		case secret.Name == "":
			return errors.New("a Secret has no metadata.name")
		case names[secret.Name]:
			return fmt.Errorf("secret %s is there twice", secret.Name)
		case secret.Namespace != m.Shoot.Namespace:
			return fmt.Errorf("secret %s is in namespace %q, the Shoot in %q: a Shoot refers to Secrets of its own namespace only",
				secret.Name, secret.Namespace, m.Shoot.Namespace)
		}
		names[secret.Name] = true
	}
	return nil
}

// stored returns the Secret with stringData written over data, as the API server stores it.
func stored(secret *corev1.Secret) *corev1.Secret {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	return secret
}
