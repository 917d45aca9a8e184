// Command upstream-registry runs in the testbed's upstream containers. serve runs a registry and
// proxy an HTTP proxy; replace-credentials and replace-faults run inside a registry's container.
// The command handles arguments and signals only; packages server and outbound do the work.
package main
