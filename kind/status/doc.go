// Package status reads the status of a testbed. It changes nothing. A value that cannot be read is
// replaced by a problem, so that a broken testbed still has a status.
package status
