// Package server runs in an upstream container: a real distribution registry on the file system,
// behind an access log, with an HTTP and an HTTPS port. It injects faults into the answers, and can
// be a private registry of Amazon ECR.
//
// It is part of a small static binary, so it imports no clients of container engines and
// Kubernetes.
package server
