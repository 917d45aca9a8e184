// Command testbed brings the testbed of the registry-cache extension up, shows it, breaks it on
// purpose and removes it. What it can do is in package cli; this is only its process.
package main
