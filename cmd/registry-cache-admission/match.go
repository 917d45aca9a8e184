package main

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// match returns the object of that namespace and name, and the zero value of T if there is none. Files under version
// control often have no namespace, and those of kubectl always do: if the namespace is empty, the name alone counts, and if
// nothing is in the namespace, what has none. An object that is there twice counts once. The error says that more than one
// object fits.
func match[T client.Object](objects []T, namespace, name string) (found T, err error) {
	named := func(inNamespace func(string) bool) []T {
		var matches []T
		for _, object := range objects {
			if object.GetName() == name && inNamespace(object.GetNamespace()) {
				matches = append(matches, object)
			}
		}
		return matches
	}
	var matches []T
	if namespace == "" {
		matches = named(func(string) bool { return true })
	} else if matches = named(func(other string) bool { return other == namespace }); len(matches) == 0 {
		matches = named(func(other string) bool { return other == "" })
	}
	if len(matches) == 0 {
		return found, nil
	}
	return only(matches)
}

// only returns the object that all of them are.
func only[T client.Object](objects []T) (found T, err error) {
	found = objects[0]
	for _, other := range objects[1:] {
		switch {
		case other.GetNamespace() != found.GetNamespace():
			return found, fmt.Errorf("it may be %s or %s: set metadata.namespace where it is missing", qualified(found), qualified(other))
		case !equality.Semantic.DeepEqual(found, other):
			return found, errors.New("it is there twice, with different content")
		}
	}
	return found, nil
}

// qualified returns <namespace>/<name>, or the name alone without a namespace.
func qualified(object client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/")
}
