// Package osextension is the Gardener extension for the operating system of the testbed's machines,
// which are kind nodes. It reconciles OperatingSystemConfigs of type "kind" with gardener's
// extension library and adds nothing to them.
//
// The package must not contain code for the installation of its pod or for other extensions.
package osextension
