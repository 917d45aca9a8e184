// Package plantedbugs plants bugs and checks that scenarios detect them. A planted bug replaces one
// line of the sources, and the scenarios that cover this line must fail.
//
// The package runs the scenarios as a separate program and must not import package e2e.
package plantedbugs
