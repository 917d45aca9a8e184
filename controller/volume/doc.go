// Package volume grows the claims of a cache's StatefulSet, and replaces volumes on the disks of
// deleted nodes. Kubernetes does neither, because claim templates are immutable and such volumes
// stay bound. In the shoot it changes only claims with the labels of a cache, their pods and
// StatefulSets.
//
// The caller decides on the size and deploys the StatefulSets.
package volume
