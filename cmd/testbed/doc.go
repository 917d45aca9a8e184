// Command testbed creates, shows, breaks and removes the testbed of the registry-cache extension.
// The commands are in package cli.
package main
