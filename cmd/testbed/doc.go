// Command testbed creates, shows, breaks and removes the testbed of the registry-cache extension.
// It is only the process: the commands are in package cli.
package main
