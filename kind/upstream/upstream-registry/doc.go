// Command upstream-registry runs in the testbed's upstream containers. serve runs a registry, and
// proxy an HTTP proxy. replace-credentials and replace-faults replace files of a running registry.
// The command handles only arguments and signals. Packages server and outbound do the work.
package main
