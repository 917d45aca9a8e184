// Package fieldbugs holds bugs of image pull caches that users reported, and reproduces them. A
// file describes each bug: its reports, its symptom, the fault that causes it, and what must happen
// instead.
//
// A bug runs command lines of `testbed` and checks claims on their output. docs/field-bugs.md lists
// them. The package must not know how a command line is executed: the caller of Reproduce provides
// it.
//
// A bug with a Known mark is reproduced too, and must fail at the claim that the mark names. When
// that claim holds, the run fails until the mark is removed.
package fieldbugs
