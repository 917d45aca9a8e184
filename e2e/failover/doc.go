// Package failover records how long pulls take while a cache fails, and renders docs/failover.md.
package failover
