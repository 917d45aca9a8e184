// Package server runs in an upstream container: a real distribution registry on the file system,
// behind an access log, with ports for HTTP and HTTPS. It injects faults into the answers, and can
// act as a private registry of Amazon ECR.
//
// It is part of a small static binary, so it imports no clients of container engines or Kubernetes.
package server
