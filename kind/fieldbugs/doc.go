// Package fieldbugs describes and reproduces bugs of image pull caches that users reported. A Bug
// lists its reports, its symptom, the fault that causes this symptom, and the expectation.
//
// The steps of a bug are `testbed` commands, and claims about their output. docs/field-bugs.md
// lists all bugs and their commands. The package must not execute commands itself: the caller of
// Reproduce passes a function that does it.
//
// A bug with a Known mark must fail at the claim that Known names. If this claim holds, the run
// fails until someone removes the mark.
package fieldbugs
