// Command bench-cache compares the cache with a stock distribution, nginx and downloads without a
// cache, see docs/benchmarks.md. It prints tables, or with --json the measured values, to standard
// output.
//
// A missed goal is an error only with --strict, because a busy machine gives bad numbers.
package main
