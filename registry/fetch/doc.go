// Package fetch downloads blobs from the upstream to the volume, once for all clients that want
// them. A flight is one blob on its way: a file that grows, which clients read at their own pace.
// It resumes after a break, and continues after a restart of the process.
//
// A blob for which the volume has no room passes through a window in memory instead.
//
// The package knows neither HTTP responses to clients nor what is evicted.
package fetch
