// Command registry-cache-admission validates Shoots that use the extension of type registry-cache: `serve` is the webhook
// in the garden, `validate` does the same offline, for checks before a change is applied.
//
// What is wrong with a Shoot, package webhook/shoot knows. This one wires packages together, and finds in files what belongs
// together: the Shoot of before, and the Secrets that a Shoot refers to.
package main
