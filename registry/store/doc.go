// Package store is the volume of one cache, in distribution's layout, so that a stock image can
// serve it. It writes what the caller has verified, and knows which files have been compared with
// their digest since the start.
//
// A call waits at most a second for the disk (ErrSlow). The package knows neither clients nor the
// upstream.
package store
