package bundle

import (
	"net/netip"
	"strings"
)

// parseRoutes keeps what begins with a range of addresses, or is the default route.
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

// parseTables reads the names of the tables of `nft list ruleset`.
func parseTables(text string) []string {
	var tables []string
	for line := range strings.Lines(text) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "table "); found {
			tables = append(tables, strings.TrimSpace(strings.TrimSuffix(name, "{")))
		}
	}
	return tables
}

// parseStopped reads `ps -o pid,stat,etime,args`: state T is stopped, t stopped by a debugger.
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
