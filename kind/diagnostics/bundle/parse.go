package bundle

import (
	"net/netip"
	"strings"
)

// parseRoutes parses the output of `ip route`. It keeps lines that begin with a CIDR.
func parseRoutes(text string) map[string]string {
	routes := map[string]string{}
	for line := range strings.Lines(text) {
		destination, _, _ := strings.Cut(line, " ")
		if _, err := netip.ParsePrefix(destination); err == nil {
			routes[destination] = strings.TrimSpace(line)
		}
	}
	return routes
}

// parseTables returns the names of the tables in the output of `nft list ruleset`.
func parseTables(text string) []string {
	var tables []string
	for line := range strings.Lines(text) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "table "); found {
			tables = append(tables, strings.TrimSpace(strings.TrimSuffix(name, "{")))
		}
	}
	return tables
}

// parseStopped parses the output of `ps -o pid,stat,etime,args`. State T is stopped by a signal, t
// by a debugger.
func parseStopped(text string) []string {
	var stopped []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 3 && (words[1][0] == 'T' || words[1][0] == 't') {
			stopped = append(stopped, strings.Join(words[3:], " "))
		}
	}
	return stopped
}
