// Package timeline records every change of objects in a cluster, by watch, from a known resource version on, so that a
// test can say "this never existed" and "this came before that" without sampling.
//
// It must not know what the objects mean.
package timeline
