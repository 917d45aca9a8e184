// Package ecr gets the credentials of a private registry of Amazon ECR: a token of twelve hours,
// for which it asks the API of AWS with an access key. It keeps the token in memory, renews it
// before it expires, and sends the access key to nobody: requests are signed (Signature Version 4).
//
// The package knows no registry: package upstream uses the credentials as those of a Secret.
package ecr
