// Package auditlog reads the audit log of an API server while it is written, and counts requests by kind and by shoot.
//
// It must not know who made the requests, or why.
package auditlog
