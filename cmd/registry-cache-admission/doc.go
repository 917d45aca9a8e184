// Command registry-cache-admission validates Shoots that use the extension of type registry-cache: `serve` is the webhook
// in the garden, `validate` does the same offline, for checks before a change is applied.
//
// It only wires packages together: what is wrong with a Shoot, package webhook/shoot knows.
package main
