// Package doctor says what is wrong with a machine and a testbed, and what to do about it. It turns what others have found
// into one report, and prints it; it must not look at anything itself.
package doctor
