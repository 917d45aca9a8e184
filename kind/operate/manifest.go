package operate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Manifest is the content of one file: a Shoot as written for a garden.
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

// LoadManifest calls ReadManifest with the content of a file.
func LoadManifest(path string) (*Manifest, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading
	return ReadManifest(path, file)
}

// ReadManifest reads YAML or JSON documents: exactly one Shoot (core.gardener.cloud/v1beta1) and
// Secrets of its namespace. Other kinds and unknown or duplicate fields are errors. Only the
// extension checks a providerConfig. Errors contain the name of the input, but never quote a
// Secret.
func ReadManifest(name string, content io.Reader) (*Manifest, error) {
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(content))
	read := &Manifest{}
	for number := 1; ; number++ {
		document, err := documents.Read()
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

// Overlay returns a copy of base, the testbed's Shoot, with the following fields of the manifest:
// labels, annotations, extensions, resources, purpose, hibernation, maintenance, monitoring and
// systemComponents. The other fields are those of base, because the clusters already exist.
func (m *Manifest) Overlay(base *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot, wanted := base.DeepCopy(), m.Shoot.DeepCopy()
	shoot.Labels = utils.MergeStringMaps(wanted.Labels, base.Labels) // the value of base wins
	shoot.Annotations = utils.MergeStringMaps(wanted.Annotations, base.Annotations)
	// This annotation requests an operation of gardenlet. Only the testbed's commands may set it.
	delete(shoot.Annotations, v1beta1constants.GardenerOperation)

	shoot.Spec.Extensions = wanted.Spec.Extensions
	shoot.Spec.Resources = wanted.Spec.Resources
	shoot.Spec.Hibernation = wanted.Spec.Hibernation
	shoot.Spec.Maintenance = wanted.Spec.Maintenance
	shoot.Spec.Monitoring = wanted.Spec.Monitoring
	shoot.Spec.SystemComponents = wanted.Spec.SystemComponents
	if wanted.Spec.Purpose != nil {
		shoot.Spec.Purpose = wanted.Spec.Purpose
	}
	return shoot
}
