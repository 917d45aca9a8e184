// Package ecr makes a registry a private one of Amazon ECR: it serves the API that sells tokens for
// an access key, and admits only those who have a token as password.
//
// It is part of the small static binary of upstreams, so it imports no SDK.
package ecr
