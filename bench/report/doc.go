// Package report holds what was measured, and says what it means: growth from one number of shoots to the next, and which goals
// are met. Values in, text out.
//
// It must not know how anything was measured.
package report
