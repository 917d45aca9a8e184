// Package registry serves a pull-through cache for one upstream: the pull part of the OCI
// distribution-spec, with distribution's configuration format and storage layout.
//
// This package has the configuration, the ports, and what clients get. Package cache decides where
// an answer comes from: store (the volume) or upstream (also other replicas). index knows what
// is stored, and chooses what is evicted. ecr gets credentials for Amazon ECR.
package registry
