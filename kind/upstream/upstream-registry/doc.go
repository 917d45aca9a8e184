// Command upstream-registry runs in the testbed's upstream containers. It has four subcommands:
// serve runs a registry, proxy runs an HTTP proxy, and replace-credentials and replace-faults
// replace files of a running registry. Packages server and outbound do the work.
package main
