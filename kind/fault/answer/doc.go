// Package answer is an HTTP server that stands in for a cache that fails: it answers everything
// with one status, with a certificate of the caller's choice.
package answer
