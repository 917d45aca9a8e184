// Package image builds container images without a container engine and without pulling anything: static Go binaries on
// scratch, and test images of random content that a pod can run.
//
// Everything here is a function from files to v1.Image values; the only process it starts is the go command. It must
// not know Docker, containerd or Kubernetes: loading an archive into one of them is done by kind/cluster and
// kind/upstream.
package image
