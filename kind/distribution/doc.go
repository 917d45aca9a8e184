// Package distribution describes the stock image of CNCF distribution, as upstream's Dockerfile
// builds it. Scenarios run it instead of the extension's cache image. It has a module of its own,
// in the folder module, because it needs the client libraries of three cloud providers that the
// main module does not.
//
// It must not know who runs the image or how.
package distribution
