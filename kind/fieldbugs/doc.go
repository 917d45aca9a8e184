// Package fieldbugs holds the bugs of image-pull caches that were reported from the field, as things that can be reproduced: one
// file each, with its reports, its symptom, the fault that makes it, and what a user of this cache must see instead.
//
// What a bug does is command lines of `testbed` and claims on what they answer, so its page in docs/field-bugs.md lists what was
// run. The package must not know what executes a command line: `make e2e-all` and `testbed reproduce` hand that in.
//
// A bug that is not reached yet is marked as Known. It runs all the same, must fail by the claim that the mark names, and fails
// the run on the day on which that claim holds, until the mark is taken off.
package fieldbugs
