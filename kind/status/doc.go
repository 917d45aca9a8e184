// Package status describes a testbed, and its Shoot, as they are now. It changes nothing. What it
// cannot read has a problem in place of a value, so that a broken testbed still has a status.
package status
