// Package nodeimage builds the image of a kind node from Go modules and Debian packages alone, so that clusters start
// where no container registry is in reach.
//
// The recipe is a function of values: Inputs (the go.mod and go.sum files below modules/, our small mains, the kind
// module's version, the Debian packages, this package's own recipe version) have one hash, the hash is the image's tag,
// and an image with that tag is never built again. What goes in:
//
//   - programs: Kubernetes, etcd, CoreDNS, crictl, containerd, runc, the CNI plugins and local-path-provisioner, each
//     pinned by a go.mod below modules/ so that their dependencies never meet ours;
//   - a Debian root file system (mmdebstrap);
//   - kind's base files, read from kind's Go module;
//   - containerd's image store with the images that kubeadm asks for, from scratch around the same programs.
//
// Debian's packages are the one input that is not pinned: their names and the release are in the hash, their versions are
// not. A node image has the packages of the day on which it was built, until another input changes or the cached tree is
// removed.
//
// The Docker Engine is asked twice, whether the image is there and to load it; no container runs during a build.
//
// The package must not know how clusters are made of the image, nor who installs the engine.
package nodeimage
