// Package manifest reads the Shoot that somebody has in a file, with the Secrets that it refers to, and fits it into the
// testbed: what concerns extensions and the life of the shoot is the file's, everything else the testbed's.
//
// Both are functions of values. The package must not know which testbed it is, nor what any extension does.
package manifest
