package v1alpha3

import (
	"errors"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// quotedField matches the message of the strict decoder for one field, such as: unknown field "caches[0].upstrem".
var quotedField = regexp.MustCompile(`^(unknown field|duplicate field) "([^"]+)"$`)

// DecodeErrors takes an error of DecodeConfig apart: one mistake for each field, with its path. A mistake that concerns
// the document as a whole, such as an unknown kind, has an empty path. For nil it returns none.
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

// parts returns the errors that a decoder collected in err, or else err itself.
func parts(err error) []error {
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		return aggregate.Errors()
	}
	for wrapped := err; wrapped != nil; wrapped = errors.Unwrap(wrapped) {
		if strict, ok := runtime.AsStrictDecodingError(wrapped); ok { // looks at no wrapped one itself
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
