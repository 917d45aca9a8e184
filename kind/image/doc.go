// Package image builds container images without a container engine and without pulling: static Go
// binaries on scratch, and test images of random content that a pod can run.
//
// Everything here is a function from files to v1.Image values. The only process it starts is the go
// command. It must not know Docker, containerd or Kubernetes.
package image
