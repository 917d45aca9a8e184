// Package store reads and writes the volume of a cache: blobs, links of repositories, and tags, in
// the layout of distribution v3 (registry/storage/paths.go), so that a stock image can use the
// volume. What is on its way from the upstream is in a folder that distribution does not know.
//
// The package knows neither the upstream nor HTTP, and decides nothing: package index decides what
// is evicted.
package store
