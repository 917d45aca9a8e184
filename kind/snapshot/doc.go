// Package snapshot saves and restores the volumes of caches. A Store is the folder with the
// snapshots of a testbed. Each snapshot is a folder of archives with a description.
//
// A shell script on the node reads and writes the volumes. The script pauses the processes of a
// volume only while it creates hard links. The package must not interpret the content of volumes.
package snapshot
