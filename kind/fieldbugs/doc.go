// Package fieldbugs describes and reproduces bugs of image pull caches that users reported. A Bug
// has its reports, its symptom, the fault that causes it, and what must happen instead.
//
// A bug runs command lines of `testbed` and checks claims about their output. docs/field-bugs.md
// lists all bugs and their commands. The package must not know how commands are executed: the
// caller of Reproduce provides this.
//
// A bug with a Known mark is reproduced too, and must fail at the claim that Known names. When this
// claim holds, the run fails until Known is removed.
package fieldbugs
