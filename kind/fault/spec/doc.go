// Package spec describes a fault as a value: its target, its kind and its options. It also defines
// the text form for users and the JSON form for storage.
//
// It must not know how packages fault and server inject a fault.
package spec
