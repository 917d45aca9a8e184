package controlplane

import (
	"fmt"
	"strings"
)

// auditPolicy records one event for each request of the users: when it was answered, or, for a watch, when it began. Leases are
// left out: what leader election and heartbeats cost does not grow, and never rests.
func auditPolicy(users []string) string {
	var list strings.Builder
	for _, user := range users {
		fmt.Fprintf(&list, "  - %q\n", user)
	}
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: Metadata
  users:
` + list.String() + `- level: None
`
}
