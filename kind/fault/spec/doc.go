// Package spec describes a fault as a value: its target, its kind and its options. It also has the
// text form of faults for users and the JSON in which they are stored.
//
// It must not know how packages fault and server inject a fault.
package spec
