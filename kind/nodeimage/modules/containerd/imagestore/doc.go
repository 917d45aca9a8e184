// Command imagestore writes images into a containerd root directory while no containerd runs: it reads one OCI image
// layout as a tar archive from standard input and creates the content store and the metadata database that containerd
// opens at its next start. The images are not unpacked; containerd does that when a container first needs one. The name
// of each image goes to standard output.
//
// Usage: imagestore CONTAINERD-ROOT <LAYOUT.TAR
//
// It must not know which images these are, nor where their parts come from.
package main
