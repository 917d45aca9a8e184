// Package image builds container images without a container engine and without pulling: static Go
// binaries on scratch, and test images of random content that a pod can run.
//
// Build runs only the go command. Load imports images into the containerd of nodes. The package
// must not import clients of Docker or Kubernetes.
package image
