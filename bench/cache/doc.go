// Package cache compares the cache with a stock distribution, nginx and downloads without a cache,
// in rows: delay and rate of the line to the upstream, size of the blobs, number of clients.
//
//   - upstream: the registry process and the line to it.
//   - contender: what is compared, as processes.
//   - load: the clients.
//   - report: tables and plots.
//
// A slow contender is not an error. The report shows which goals are held.
//
// The package must not know how a contender works: it measures seconds, bytes and requests.
package cache
