// Package snapshot keeps the content of volumes in files, and brings it back: a Store is the folder with the snapshots of one testbed,
// each a folder of archives with a description of what is in them.
//
// On a node a shell script does the rest; it stops the processes that write to a volume no longer than hard links take. The
// package must not know what is in a volume, nor how pods and nodes are found.
package snapshot
