// Package bundle reads the files of a bundle of diagnostics into values: nodes with their units and hosts.toml files, the
// objects of both clusters, upstreams with their access logs, the faults that were put in.
//
// It reads a file system and nothing else, so that whatever is concluded rests on what a reader of the bundle has. It must
// not know how the files are collected, nor what is good or bad. A file that is missing or cannot be read leaves its part
// empty: half a bundle is still read.
package bundle
