// Package load sends admission reviews to a webhook at a steady rate, as an API server does, and measures the answers. It also
// has the two ways in which the API server of a shoot is not there: one that hangs, and one that is gone.
//
// It must not know whose webhook it is.
package load
