// Package namespace offers a cache.Cache to distribution's HTTP layer as a registry middleware. It
// answers everything itself: nothing reaches distribution's own storage.
package namespace
