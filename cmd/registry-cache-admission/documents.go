package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

type documents struct {
	shoots  []*gardencorev1beta1.Shoot
	secrets []*corev1.Secret
}

// standardInput is the file name that stands for standard input.
const standardInput = "-"

// readFile adds the documents of a file, or of standard input for "-". It writes a note for each
// document that is neither a Shoot, a Secret nor a list.
func (d *documents) readFile(name string, stdin io.Reader, notes io.Writer) error {
	if name == standardInput {
		return d.read("standard input", stdin, notes)
	}
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read Shoots: %w", err)
	}
	err = d.read(name, file, notes)
	return errors.Join(err, file.Close())
}

// readFolder adds the Secrets in the .yaml, .yml and .json files of a folder, recursively.
func (d *documents) readFolder(folder string) error {
	found := &documents{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return err
		}
		return found.readFile(path, nil, io.Discard)
	})
	if err != nil {
		return fmt.Errorf("read resources: %w", err)
	}
	d.secrets = append(d.secrets, found.secrets...)
	return nil
}

func (d *documents) read(source string, content io.Reader, notes io.Writer) error {
	reader := kubeyaml.NewYAMLReader(bufio.NewReader(content))
	for number := 1; ; number++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", source, err)
		}
		document, err := yaml.YAMLToJSONStrict(text) // rejects duplicate keys
		if err != nil {
			return fmt.Errorf("document %d of %s is not YAML: %w", number, source, err)
		}
		if err := d.add(document, notes); err != nil {
			return fmt.Errorf("document %d of %s: %w", number, source, err)
		}
	}
}

// add adds a document, or the items of a list. It ignores unknown fields, because Gardener may be
// newer.
func (d *documents) add(document []byte, notes io.Writer) error {
	if bytes.Equal(document, []byte("null")) {
		return nil
	}
	var kind struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &kind); err != nil {
		return fmt.Errorf("not a Kubernetes object: %w", err)
	}
	switch {
	case kind.APIVersion == gardencorev1beta1.SchemeGroupVersion.String() && kind.Kind == "Shoot":
		return decode(document, &d.shoots)
	case kind.APIVersion == "v1" && kind.Kind == "Secret":
		return decode(document, &d.secrets)
	case kind.Items != nil:
		for _, item := range kind.Items {
			if err := d.add(item, notes); err != nil {
				return err
			}
		}
		return nil
	default:
		fmt.Fprintf(notes, "skipped a %s of apiVersion %s\n", kind.Kind, kind.APIVersion)
		return nil
	}
}

func decode[T any](document []byte, into *[]*T) error {
	object := new(T)
	if err := json.Unmarshal(document, object); err != nil {
		return err
	}
	*into = append(*into, object)
	return nil
}

// match returns the object with the namespace and name, or the zero value of T if there is none. In
// files under version control, objects often have no namespace. Objects from kubectl always have
// one. So an empty namespace matches all objects with the name. If no object is in the namespace,
// an object without a namespace matches. Identical copies count once. An error means that several
// different objects match.
func match[T client.Object](objects []T, namespace, name string) (found T, err error) {
	var matches, withoutNamespace []T
	for _, object := range objects {
		switch {
		case object.GetName() != name:
		case namespace == "" || object.GetNamespace() == namespace:
			matches = append(matches, object)
		case object.GetNamespace() == "":
			withoutNamespace = append(withoutNamespace, object)
		}
	}
	if len(matches) == 0 {
		matches = withoutNamespace
	}
	if len(matches) == 0 {
		return found, nil
	}
	found = matches[0]
	for _, other := range matches[1:] {
		switch {
		case other.GetNamespace() != found.GetNamespace():
			return found, fmt.Errorf("%s and %s match: set the missing metadata.namespace", qualified(found), qualified(other))
		case !equality.Semantic.DeepEqual(found, other):
			return found, errors.New("found twice with different content")
		}
	}
	return found, nil
}

func qualified(object client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/")
}

// secretsOfFiles reads Secrets from files for package shoot.
type secretsOfFiles struct {
	secrets []*corev1.Secret
	// complete makes a missing Secret an error. If not set, get skips the check and writes a note.
	complete bool
	notes    io.Writer
	// ambiguous is the last error of match. If it is set, the result of Check must not be used.
	ambiguous error
}

// get implements shoot.Secrets.
func (s *secretsOfFiles) get(_ context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	name := strings.TrimPrefix(key.String(), "/")
	secret, err := match(s.secrets, key.Namespace, key.Name)
	switch {
	case err != nil:
		s.ambiguous = fmt.Errorf("look for the Secret %s: %w", name, err)
		return nil, nil
	case secret != nil:
		return stored(secret, key.Namespace), nil
	case s.complete:
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	fmt.Fprintf(s.notes, "the Secret %s is in no file: check skipped (see --resources)\n", name)
	return nil, nil
}

// stored returns the Secret as the API server stores it: in the namespace, without stringData.
func stored(secret *corev1.Secret, namespace string) *corev1.Secret {
	result := secret.DeepCopy()
	if result.Namespace == "" {
		result.Namespace = namespace
	}
	for key, value := range result.StringData {
		if result.Data == nil {
			result.Data = map[string][]byte{}
		}
		result.Data[key] = []byte(value)
	}
	result.StringData = nil
	return result
}
