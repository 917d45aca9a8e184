// Package proof plants bugs: one line of the sources is replaced, and the scenarios must turn red.
// That shows that the scenarios notice a regression.
//
// It runs the scenarios as a separate program and does not import them.
package proof
