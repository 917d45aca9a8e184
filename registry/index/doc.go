// Package index knows what is stored, how large it is and when it was last used, and chooses what
// is evicted: by TTL and, when space is needed, by least recent use. It is lost with the process
// and rebuilt from the volume.
//
// The index is a value in memory. It knows neither files nor HTTP, and nothing in it waits.
package index
