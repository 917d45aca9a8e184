// Package cache compares the cache with a stock distribution, nginx and downloads without a cache,
// in rows: delay and rate of the line to the upstream, size of the blobs, number of clients.
//
// Package contender starts what is compared, as processes.
//
// A slow contender is not an error. The report says which goals are held.
//
// The package must not know how a contender works: it measures seconds, bytes and requests.
package cache
