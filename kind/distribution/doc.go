// Package distribution describes the stock image of CNCF distribution, as that project's Dockerfile
// builds it. Scenarios run it instead of the extension's cache image. The folder named module
// contains a separate Go module for the build, because the registry needs the client libraries of
// three cloud providers, which the main module does not need.
package distribution
