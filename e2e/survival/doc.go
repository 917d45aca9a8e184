// Package survival proves that the testbed survives what a machine does to it: verbs that are
// killed, an engine that dies or is restarted between verbs, disks that are full; and that `testbed
// down` leaves nothing then.
//
// It runs on a machine of its own, which the program machine makes of namespaces: what was not
// there before the testbed came, and is there when it has gone, can only be the testbed's. It uses
// the command line, as a person would, and must not know more of the testbed than its names.
package survival
