package main

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// match returns the object with the namespace and name, or the zero value of T if there is none.
// Files under version control often have no namespace, but those from kubectl always do. So an
// empty namespace matches any, and if no object is in the namespace, one without a namespace
// matches. Identical copies count once. An error means that several objects match.
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

// qualified returns <namespace>/<name>, or only the name if there is no namespace.
func qualified(object client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/")
}
