package v1alpha3

import (
	"errors"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// quotedField matches an error of the strict decoder, such as: unknown field "caches[0].upstrem".
var quotedField = regexp.MustCompile(`^(unknown field|duplicate field) "([^"]+)"$`)

// DecodeErrors splits an error of DecodeConfig into one error per field, with its path. An error
// that concerns the whole document, such as an unknown kind, has an empty path. For nil it returns
// nil.
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
		if strict, ok := runtime.AsStrictDecodingError(wrapped); ok { // it does not unwrap
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
