package v1alpha3

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// checkTypes returns an error with a path for every value in raw that does not fit the Go type of
// into. It leaves unknown and duplicate fields, and invalid YAML, to the decoder. Errors contain no
// values, because a misplaced value may be the password of a proxy.
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
	_, decodesItself := reflect.New(typ).Interface().(json.Unmarshaler)
	switch {
	case decodesItself || string(raw) == "null":
		return checkLeaf(raw, typ, path)
	case typ.Kind() == reflect.Struct:
		return checkStruct(raw, typ, path)
	case typ.Kind() == reflect.Slice:
		return checkSlice(raw, typ, path)
	default:
		return checkLeaf(raw, typ, path)
	}
}

func checkLeaf(raw json.RawMessage, typ reflect.Type, path *field.Path) field.ErrorList {
	if err := json.Unmarshal(raw, reflect.New(typ).Interface()); err != nil {
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
		if name == "" { // inlined: its fields are strings of this object
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
