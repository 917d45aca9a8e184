// Command upstream-registry is the program of the containers on the upstream side of the testbed: serve, a registry;
// proxy, an HTTP proxy; replace-credentials and replace-faults, run inside a registry's container. It only reads arguments and
// signals: what it serves is in packages server and outbound.
package main
