package main

import (
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/examples"
)

// TestRegisteredType: the controller must handle the registered type.
func TestRegisteredType(t *testing.T) {
	registration, err := examples.ControllerRegistration()
	if err != nil {
		t.Fatal(err)
	}
	if got := registration.Spec.Resources[0].Type; got != v1alpha3.ExtensionType {
		t.Errorf("registered for type %q, the controller acts on %q", got, v1alpha3.ExtensionType)
	}
}
