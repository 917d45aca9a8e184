package configuration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Load reads and validates a file strictly, sets the defaults, and makes paths absolute.
func Load(path string) (*Testbed, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer func() { _ = file.Close() }()
	return Read(path, filepath.Dir(path), file)
}

// Read is like Load, but reads from content. Errors start with name, and paths are relative to
// folder.
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
	paths := map[string]*string{"shoot.manifest": &read.Shoot.Manifest}
	if read.Extension != nil {
		paths["extension.registration"], paths["extension.chart"] = &read.Extension.Registration, &read.Extension.Chart
	}
	for at, path := range paths {
		if *path == "" || filepath.IsAbs(*path) {
			continue
		}
		if *path, err = filepath.Abs(filepath.Join(folder, *path)); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, at, err)
		}
	}
	return read, nil
}

// onlyDocument returns the one non-empty document of a YAML stream as JSON.
func onlyDocument(content io.Reader) ([]byte, error) {
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(content))
	var only []byte
	for {
		document, err := documents.Read()
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

// decode checks the apiVersion first, since fields of another version may be unknown.
func decode(document []byte) (*Testbed, error) {
	read := &Testbed{}
	strict, err := strictjson.UnmarshalStrict(document, read)
	switch {
	case read.APIVersion != APIVersion || read.Kind != Kind:
		return nil, fmt.Errorf("want apiVersion %s and kind %s, not %q and %q", APIVersion, Kind, read.APIVersion, read.Kind)
	case err != nil:
		return nil, err
	case len(strict) > 0:
		return nil, utilerrors.NewAggregate(strict)
	}
	return read, nil
}

// Encode returns the configuration as a file that Read accepts.
func (t *Testbed) Encode() ([]byte, error) {
	data, err := yaml.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	return data, nil
}

const (
	maxWorkers      = 5
	maxUpstreams    = 8
	maxName         = 20                       // limits the length of container and cache names that contain it
	inUserNamespace = "KubeletInUserNamespace" // a feature gate that the testbed itself sets
)

var gate = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Validate returns the mistakes, each with its field. The defaults must already be set.
func Validate(t *Testbed) field.ErrorList {
	return slices.Concat(validateVersions(t, field.NewPath("shoot")), validateShoot(&t.Shoot, field.NewPath("shoot")),
		validateGarden(t, field.NewPath("shoot")), validateUpstreams(t, field.NewPath("upstreams")),
		validateExtension(t.Extension, field.NewPath("extension")))
}

// validateGarden rejects shoot clusters for which the landscape of the garden has no place.
func validateGarden(t *Testbed, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Garden && t.Shoot.KubernetesVersion != "" {
		errs = append(errs, field.Forbidden(at.Child("kubernetesVersion"), "with a garden, the shoot has the version of the seed"))
	}
	if t.Garden && t.Shoot.IPFamily != IPv4 {
		errs = append(errs, field.Forbidden(at.Child("ipFamily"), "with a garden, the shoot has only IPv4"))
	}
	return errs
}

func validateExtension(e *Extension, at *field.Path) field.ErrorList {
	if e == nil {
		return nil
	}
	var errs field.ErrorList
	if problems := validation.IsDNS1123Label(e.Name); len(problems) > 0 {
		errs = append(errs, field.Invalid(at.Child("name"), e.Name, problems[0]))
	}
	require := func(at *field.Path, value string) {
		if value == "" {
			errs = append(errs, field.Required(at, ""))
		}
	}
	require(at.Child("registration"), e.Registration)
	require(at.Child("chart"), e.Chart)
	for i, image := range e.Images {
		at := at.Child("images").Index(i)
		require(at.Child("name"), image.Name)
		require(at.Child("package"), image.Package)
		require(at.Child("value"), image.Value)
	}
	return errs
}

func validateVersions(t *Testbed, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	kubernetes, containerd := t.Shoot.KubernetesVersion, t.Shoot.Containerd.Version
	for _, chosen := range []struct {
		at    *field.Path
		value string
		known []string
	}{
		{at.Child("kubernetesVersion"), kubernetes, KubernetesVersions},
		{at.Child("containerd", "version"), containerd, ContainerdVersions},
	} {
		switch {
		case chosen.value == "":
		case t.NodeImage != "":
			errs = append(errs, field.Forbidden(chosen.at, "nodeImage has its own version"))
		default:
			errs = append(errs, oneOf(chosen.at, chosen.value, chosen.known...)...)
		}
	}
	if containerd == "1.7" && kubernetes != "1.34" {
		errs = append(errs, field.Forbidden(at.Child("containerd", "version"), "the kubelet supports containerd 1.7 only until 1.35"))
	}
	if (containerd == "1.7" || containerd == "2.0") && t.Shoot.Containerd.Pull == PullTransfer {
		errs = append(errs, field.Forbidden(at.Child("containerd", "pull"), "containerd before 2.1 does not pull with the transfer service"))
	}
	return errs
}

func validateShoot(s *Shoot, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if workers := *s.Workers; workers < 1 || workers > maxWorkers {
		errs = append(errs, field.Invalid(at.Child("workers"), workers, "must be 1 to 5"))
	}
	errs = append(errs, oneOf(at.Child("ipFamily"), s.IPFamily, IPv4, IPv6, DualStack)...)
	errs = append(errs, oneOf(at.Child("kubeProxyMode"), s.KubeProxyMode, NFTables, IPTables)...)
	for name := range s.FeatureGates { // Kubernetes refuses to start with an unknown feature gate
		switch at := at.Child("featureGates").Key(name); {
		case name == inUserNamespace:
			errs = append(errs, field.Forbidden(at, "the testbed sets it if the machine needs it"))
		case !gate.MatchString(name):
			errs = append(errs, field.Invalid(at, name, "must be the name of a feature gate"))
		}
	}
	containerd := at.Child("containerd")
	errs = append(errs, oneOf(containerd.Child("pull"), s.Containerd.Pull, PullLocal, PullTransfer)...)
	for _, folder := range strings.Split(s.Containerd.ConfigPath, ":") {
		if !path.IsAbs(folder) || path.Clean(folder) != folder {
			errs = append(errs, field.Invalid(containerd.Child("configPath"), s.Containerd.ConfigPath,
				"must be absolute paths, separated by colons"))
			break
		}
	}
	return errs
}

func oneOf[T ~string](at *field.Path, value T, known ...T) field.ErrorList {
	if slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, known)}
}

func validateUpstreams(t *Testbed, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if count := len(t.Upstreams); count == 0 || count > maxUpstreams {
		errs = append(errs, field.Invalid(at, count, "must be 1 to 8"))
	}
	names := map[string]bool{}
	for i, upstream := range t.Upstreams {
		name := at.Index(i).Child("name")
		switch problems := validation.IsDNS1123Label(upstream.Name); {
		case upstream.Name == "":
			errs = append(errs, field.Required(name, "the first label of the registry's host"))
		case len(problems) > 0:
			errs = append(errs, field.Invalid(name, upstream.Name, problems[0]))
		case len(upstream.Name) > maxName:
			errs = append(errs, field.TooLong(name, upstream.Name, maxName))
		case names[upstream.Name]:
			errs = append(errs, field.Duplicate(name, upstream.Name))
		}
		names[upstream.Name] = true
		switch cached := at.Index(i).Child("cached"); {
		case upstream.Cached == nil:
		case t.Extension != nil:
			errs = append(errs, field.Forbidden(cached, "the extension is not the registry cache"))
		case t.Shoot.Manifest != "":
			errs = append(errs, field.Forbidden(cached, "shoot.manifest decides which upstreams have a cache"))
		}
	}
	return errs
}
