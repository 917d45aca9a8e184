// Command registry-cache-admission validates Shoots that use the extension of type registry-cache.
// `serve` is the webhook in the garden, `validate` does the same offline.
//
// Package webhook/shoot contains the rules. This package wires packages together, and finds the old
// Shoot and the referenced Secrets in files.
package main
