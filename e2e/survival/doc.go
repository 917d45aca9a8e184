// Package survival proves that the testbed survives killed verbs, a container engine that dies or
// restarts between verbs, and full disks, and that `testbed down` leaves nothing behind.
//
// It runs on a machine of its own, which the program machine builds from namespaces: everything
// that is new after `testbed down` was left by the testbed. The package uses the command line and
// must not know more of the testbed than its names.
package survival
