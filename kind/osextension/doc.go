// Package osextension is the Gardener extension for the operating system of the testbed's machines,
// which are kind nodes. It reconciles OperatingSystemConfigs of type "kind" with gardener's
// extension library and adds nothing to them.
//
// It must know neither how its pod is installed nor any other extension.
package osextension
