// Package kindbase reproduces the parts of kind's base image and node images that are neither
// programs nor Debian packages: files of kind's Go module, the effects of its Dockerfile, the base
// spec of containers, and the manifest of the default StorageClass.
//
// It neither builds images nor locates its inputs: callers pass the folders.
package kindbase
