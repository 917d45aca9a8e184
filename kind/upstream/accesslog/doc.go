// Package accesslog records the requests to an upstream registry: what was requested, by whom, and
// how many bytes were sent. It also counts and filters such records. With the records, scenarios
// prove that a cache served a pull.
//
// It consists of a plain HTTP middleware, and of functions that use only their arguments. It must
// not access containers or clusters, or contain code for a particular registry.
package accesslog
