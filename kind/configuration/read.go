package configuration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxBytes is the maximum size of a file.
const maxBytes = 1 << 20

// Load reads a file strictly, sets defaults, validates, and makes the path of a manifest absolute.
func Load(path string) (*Testbed, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	read, err := Read(path, filepath.Dir(path), file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return read, nil
}

// Read is Load for any reader. Errors start with name; a relative manifest path starts at folder.
func Read(name, folder string, content io.Reader) (*Testbed, error) {
	document, err := onlyDocument(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	read, err := decode(document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	read.SetDefaults()
	if err := Validate(read).ToAggregate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if manifest := read.Shoot.Manifest; manifest != "" && !filepath.IsAbs(manifest) {
		if read.Shoot.Manifest, err = filepath.Abs(filepath.Join(folder, manifest)); err != nil {
			return nil, fmt.Errorf("%s: shoot.manifest: %w", name, err)
		}
	}
	return read, nil
}

// onlyDocument returns the only non-empty document of a YAML stream as JSON.
func onlyDocument(content io.Reader) ([]byte, error) {
	limited := &io.LimitedReader{R: content, N: maxBytes + 1}
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(limited))
	var only []byte
	for {
		document, err := documents.Read()
		if limited.N <= 0 {
			return nil, fmt.Errorf("longer than %d MiB", maxBytes>>20)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(asJSON, []byte("null")) {
			continue
		}
		if only != nil {
			return nil, errors.New("more than one document: a file describes one testbed")
		}
		only = asJSON
	}
	if only == nil {
		return nil, fmt.Errorf("empty, must begin with\napiVersion: %s\nkind: %s", APIVersion, Kind)
	}
	return only, nil
}

// decode checks the version before the fields: those of another version may be unknown.
func decode(document []byte) (*Testbed, error) {
	read := &Testbed{}
	strict, err := strictjson.UnmarshalStrict(document, read)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field == "" {
		return nil, fmt.Errorf("want an object, not a %s", wrongType.Value)
	}
	if err == nil || wrongType != nil {
		if err := checkVersion(read); err != nil {
			return nil, err
		}
	}
	if wrongType != nil {
		return nil, field.TypeInvalid(field.NewPath(wrongType.Field), field.OmitValueType{},
			fmt.Sprintf("want %s, not %s", wrongType.Type, wrongType.Value))
	}
	if err != nil {
		return nil, err
	}
	if len(strict) > 0 {
		return nil, utilerrors.NewAggregate(strict)
	}
	return read, nil
}

func checkVersion(read *Testbed) error {
	if read.APIVersion == APIVersion && read.Kind == Kind {
		return nil
	}
	return fmt.Errorf("want apiVersion %s and kind %s, not %q and %q", APIVersion, Kind, read.APIVersion, read.Kind)
}

// Encode returns the configuration as a file that Read accepts.
func (t *Testbed) Encode() ([]byte, error) {
	data, err := yaml.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	return data, nil
}
