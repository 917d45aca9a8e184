// Package nodestate reads what the script of a node says of its upstreams, and whether its loop is
// alive.
package nodestate
