// Command gardener-extension-os-kind runs package osextension in a pod of the testbed's seed.
package main
