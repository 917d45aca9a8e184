// Package spec describes a fault as a value: its target, its kind and its options. It also defines
// the text form for users and the JSON form for storage.
//
// It must import neither package fault nor package server, which inject faults.
package spec
