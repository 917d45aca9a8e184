package v1alpha3

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// ErrEmpty is wrapped in the errors of DecodeConfig and DecodeStatus if there is nothing to decode.
var ErrEmpty = errors.New("is empty")

// DecodeConfig decodes the providerConfig of an Extension from JSON or YAML. It is strict: unknown,
// duplicate and wrongly cased fields, values of a wrong type, and another apiVersion or kind are
// errors. apiVersion and kind may be missing. DecodeErrors returns the paths of the fields.
// DecodeConfig neither sets defaults (SetDefaults) nor validates (Validate).
func DecodeConfig(raw []byte) (*RegistryConfig, error) {
	if errs := checkVersion(raw); len(errs) > 0 {
		return nil, fmt.Errorf("decode RegistryConfig: %w", errs.ToAggregate())
	}
	return decode(raw, strictDecoder, "RegistryConfig", &RegistryConfig{})
}

// DecodeStatus decodes the providerStatus of an Extension. Unlike DecodeConfig, it ignores unknown
// fields, because after a rollback an older controller reads what a newer one has written.
func DecodeStatus(raw []byte) (*RegistryStatus, error) {
	return decode(raw, lenientDecoder, "RegistryStatus", &RegistryStatus{})
}

var strictDecoder, lenientDecoder = newDecoders()

func newDecoders() (strict, lenient runtime.Decoder) {
	scheme := runtime.NewScheme()
	utilruntime.Must(AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(SchemeGroupVersion),
		serializer.NewCodecFactory(scheme).UniversalDecoder(SchemeGroupVersion)
}

func decode[T runtime.Object](raw []byte, decoder runtime.Decoder, kind string, into T) (none T, err error) {
	if text := strings.TrimSpace(string(raw)); text == "" || text == "null" {
		return none, fmt.Errorf("%s %w", kind, ErrEmpty)
	}
	// The decoder's errors for values of a wrong type have no field path, so check the types first.
	if errs := checkTypes(raw, into); len(errs) > 0 {
		return none, fmt.Errorf("decode %s: %w", kind, errs.ToAggregate())
	}
	if err := runtime.DecodeInto(decoder, raw, into); err != nil {
		return none, fmt.Errorf("decode %s: %w", kind, err)
	}
	return into, nil
}

// checkVersion returns an error for v1alpha1 and v1alpha2, versions with other fields that
// gardener-extension-registry-cache used in 2023.
func checkVersion(raw []byte) field.ErrorList {
	var written struct {
		APIVersion string `json:"apiVersion"`
	}
	if err := yaml.Unmarshal(raw, &written); err != nil {
		return nil // the decoder reports the error
	}
	group, version, _ := strings.Cut(written.APIVersion, "/")
	if group != GroupName || version != "v1alpha1" && version != "v1alpha2" {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("apiVersion"), written.APIVersion, fmt.Sprintf("is no longer supported: "+
		"write %s, volume.size instead of size, and garbageCollection.ttl (168h, or 0s to turn it off) "+
		"instead of garbageCollectionEnabled or garbageCollection.enabled", SchemeGroupVersion))}
}

// quotedField matches an error of the strict decoder, such as: unknown field "caches[0].upstrem".
var quotedField = regexp.MustCompile(`^(unknown field|duplicate field) "([^"]+)"$`)

// DecodeErrors splits an error of DecodeConfig into one error per field, with its path. The path is
// empty for an error about the entire document, such as an unknown kind.
func DecodeErrors(err error) field.ErrorList {
	if err == nil {
		return nil
	}
	list := field.ErrorList{}
	for _, err := range parts(err) {
		list = append(list, fieldError(err))
	}
	return list
}

// parts returns the errors that err aggregates, or err itself.
func parts(err error) []error {
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		return aggregate.Errors()
	}
	for wrapped := err; wrapped != nil; wrapped = errors.Unwrap(wrapped) {
		if strict, ok := runtime.AsStrictDecodingError(wrapped); ok { // AsStrictDecodingError does not unwrap
			return strict.Errors()
		}
	}
	return []error{err}
}

func fieldError(err error) *field.Error {
	var known *field.Error
	if errors.As(err, &known) {
		return known
	}
	result := field.Invalid(nil, field.OmitValueType{}, err.Error())
	result.Field = ""
	if match := quotedField.FindStringSubmatch(err.Error()); match != nil {
		result.Field, result.Detail = match[2], match[1]
	}
	return result
}

// checkTypes returns an error with a path for every value in raw whose type differs from the Go
// type of its field. It does not report unknown or duplicate fields, or invalid YAML: the decoder
// does. Errors contain no values, because a misplaced value may be the password of a proxy.
func checkTypes(raw []byte, into any) field.ErrorList {
	document, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return nil
	}
	return checkValue(document, reflect.TypeOf(into).Elem(), nil)
}

func checkValue(raw json.RawMessage, typ reflect.Type, path *field.Path) field.ErrorList {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	value := reflect.New(typ).Interface()
	_, decodesItself := value.(json.Unmarshaler)
	isLeaf := decodesItself || string(raw) == "null"
	switch kind := typ.Kind(); {
	case kind == reflect.Struct && !isLeaf:
		return checkStruct(raw, typ, path)
	case kind == reflect.Slice && !isLeaf:
		return checkSlice(raw, typ, path)
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

func checkStruct(raw json.RawMessage, typ reflect.Type, path *field.Path) field.ErrorList {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "must be an object")}
	}
	var errs field.ErrorList
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name == "" { // an inlined struct such as TypeMeta: its fields belong to this object
			errs = append(errs, checkStruct(raw, typ.Field(i).Type, path)...)
			continue
		}
		if value, ok := values[name]; ok {
			errs = append(errs, checkValue(value, typ.Field(i).Type, path.Child(name))...)
		}
	}
	return errs
}

func checkSlice(raw json.RawMessage, typ reflect.Type, path *field.Path) field.ErrorList {
	var values []json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "must be a list")}
	}
	var errs field.ErrorList
	for i, value := range values {
		errs = append(errs, checkValue(value, typ.Elem(), path.Index(i))...)
	}
	return errs
}
