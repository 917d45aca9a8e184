package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// documents are the Shoots and Secrets in files.
type documents struct {
	shoots  []*gardencorev1beta1.Shoot
	secrets []*corev1.Secret
}

// standardInput is the file name that stands for standard input.
const standardInput = "-"

// readFile adds the documents of a file, or of standard input for "-". It reports documents of
// other kinds to notes.
func (d *documents) readFile(name string, stdin io.Reader, notes io.Writer) error {
	if name == standardInput {
		return d.read("standard input", stdin, notes)
	}
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading Shoots: %w", err)
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
		return fmt.Errorf("reading resources: %w", err)
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
			return fmt.Errorf("reading %s: %w", source, err)
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

// add adds one document, or the items of a list. Unknown fields of a Shoot are ignored: Gardener
// may be newer.
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
