// Package probe answers the probes of nodes, GET /v2/, at the least cost: every node asks every
// cache every six seconds. It knows nothing of repositories.
package probe
