// Package accesslog records what an upstream registry was asked, by whom, and how many bytes it answered with; and it
// counts in such records. The proof that a pull came from a cache rests on it.
//
// It is a plain HTTP middleware and functions of values: it must not know containers, clusters, or which registry it
// stands in front of.
package accesslog
