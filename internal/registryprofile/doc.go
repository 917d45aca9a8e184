// Package registryprofile makes a plain registry behave like one of those that people pull from.
//
// A Profile is a value: a test changes, prints and shrinks it, and the testbed sends it as JSON.
// Profiles has those of known registries.
package registryprofile
