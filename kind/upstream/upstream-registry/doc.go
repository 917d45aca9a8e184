// Command upstream-registry runs in the testbed's upstream containers. It has four subcommands:
// serve runs a registry, proxy runs an HTTP proxy, and replace-ecr and replace-faults replace files
// of a running registry. Package server does the work of all subcommands except proxy.
package main
