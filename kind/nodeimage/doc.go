// Package nodeimage builds the image of a kind node from Go modules and Debian packages only, so
// that clusters start without access to a container registry.
//
// The recipe uses only these inputs: the go.mod and go.sum files and the small main packages below
// modules/, the version of kind's module, the toolchain, the names of the Debian packages, and the
// source of this package and of the packages below it. The hash of the inputs is the tag of the
// image. An image whose tag exists is not built again. The image contains:
//
//   - programs: Kubernetes, etcd, CoreDNS, crictl, containerd, runc, the CNI plugins and
//     local-path-provisioner, each pinned by a go.mod below modules/, so that the main module does
//     not get their dependencies;
//   - a Debian root file system (mmdebstrap);
//   - kind's base files, read from kind's Go module (package kindbase);
//   - containerd's image store with the images that kubeadm needs, built from scratch around the
//     same programs.
//
// Only the versions of Debian packages are not pinned: the hash has the release and the names of
// the packages. A node image keeps the package versions of its build day until another input
// changes or the cached tree is removed.
//
// A build uses the Docker Engine only to look for the image and to load it. It runs no container.
//
// The package creates no clusters and does not install the engine.
package nodeimage
