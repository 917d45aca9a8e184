// Package distribution describes the stock image of CNCF distribution, as its own Dockerfile builds it, for scenarios that
// run it in place of our cache image. It is compiled in a module of its own, in the folder module, because it needs the
// client libraries of three cloud providers that nothing else here does.
//
// It must not know who runs the image or how.
package distribution
