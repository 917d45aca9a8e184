package bundle

import (
	"io/fs"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/logline"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Files in the folder of a node.
const (
	UnitsFile    = "units.txt"
	CertsFile    = "certs.d.txt"
	CachesFile   = "caches.txt"
	ScriptUnit   = "configure-containerd-registries.service"
	ProbeFile    = "probe.txt"
	DiskFile     = "disk.txt"
	RouteFile    = "network.txt"
	FirewallFile = "firewall.txt"
	ProcessFile  = "processes.txt"
	ConfigFile   = "containerd-config.toml"
)

// Node is one node of a cluster.
type Node struct {
	Name string
	// Units maps names with the suffix .service to states. UnitsKnown is false if the states were not
	// collected.
	Units      map[string]Unit
	UnitsKnown bool
	// Mirrors are the parsed hosts.toml files. HostsFiles maps upstreams to the contents of these
	// files. MirrorsKnown is false if the files were not collected.
	Mirrors      []nodeconfig.HostConfig
	HostsFiles   map[string]string
	MirrorsKnown bool
	// Config is nil if the configuration of containerd is unknown.
	Config *Config
	// Registries are the registries in the unit file ScriptUnit; nil without that file.
	Registries []nodeconfig.Registry
	// State is what the script says of its upstreams. It is empty without CachesFile.
	State nodeconfig.NodeState
	// Probes are the results for the hosts in the hosts.toml files.
	Probes []Probe
	// Routes maps destinations to lines of `ip route`.
	Routes map[string]string
	// Tables are the names of firewall tables, for example "ip filter".
	Tables []string
	// Stopped contains the command lines of processes that were stopped by SIGSTOP or a debugger.
	Stopped []string
	// Full contains the mount point and the percentage of each file system that is at least 95 percent
	// full.
	Full []string
}

// Unit is the state of a systemd unit.
type Unit struct {
	Load, Active, Sub, Result string
	Restarts                  int
}

// Probe is the result of GET /v2/ on a host in a hosts.toml.
type Probe struct {
	Upstream, URL string
	// Status is the HTTP status, or 0 if the host did not answer. In that case Problem is the reason.
	Status  int
	Seconds float64
	Problem string
}

// Worker reports whether the node belongs to a worker pool of the Shoot. It checks the name that
// kind gave the node.
func (n Node) Worker() bool { return strings.Contains(n.Name, "-shoot-worker") }

// File returns the path of a file of the node in the bundle.
func (n Node) File(name string) string { return path.Join(NodeFolder, n.Name, name) }

// JournalFile returns the path of the journal of a unit in the bundle.
func (n Node) JournalFile(unit string) string { return n.File("journal/" + unit + ".log") }

// Mirror returns the hosts.toml for an upstream.
func (n Node) Mirror(upstream string) (nodeconfig.HostConfig, bool) {
	return find(n.Mirrors, func(m nodeconfig.HostConfig) bool { return m.Upstream == upstream })
}

// Registry returns the entry of Registries for an upstream.
func (n Node) Registry(upstream string) (nodeconfig.Registry, bool) {
	return find(n.Registries, func(r nodeconfig.Registry) bool { return r.Upstream == upstream })
}

// Journal returns the lines of the journal of a unit, the oldest first.
func (b *Bundle) Journal(n Node, unit string) []logline.Line {
	return b.Log(n.JournalFile(unit), logline.Journal)
}

// Log returns those lines of a log that the function read can parse.
func (b *Bundle) Log(file string, read func(string) (logline.Line, bool)) []logline.Line {
	return Parse(b.Files, file, read)
}

func readNode(files fs.FS, name string) Node {
	n := Node{Name: name, HostsFiles: map[string]string{}, Routes: map[string]string{}}
	units := text(files, n.File(UnitsFile))
	n.Units, n.UnitsKnown = parseUnits(units), units != ""
	certs := text(files, n.File(CertsFile))
	n.MirrorsKnown = certs != ""
	for _, found := range parseHostsFiles(certs) {
		n.Mirrors = append(n.Mirrors, nodeconfig.ParseHosts(found.upstream, []byte(found.content)))
		n.HostsFiles[found.upstream] = found.content
	}
	n.Config = parseConfig(text(files, n.File(ConfigFile)))
	if registries, err := nodeconfig.ParseUnit(text(files, n.File(ScriptUnit))); err == nil {
		n.Registries = registries
	}
	if state, err := nodeconfig.ParseState(text(files, n.File(CachesFile))); err == nil {
		n.State = state
	}
	for _, route := range Parse(files, n.File(RouteFile), parseRoute) {
		n.Routes[route[0]] = route[1]
	}
	n.Probes = Parse(files, n.File(ProbeFile), parseProbe)
	n.Tables = Parse(files, n.File(FirewallFile), parseTable)
	n.Stopped = Parse(files, n.File(ProcessFile), parseStopped)
	n.Full = Parse(files, n.File(DiskFile), parseFull)
	return n
}

// parseUnits parses the output of `systemctl show`: one block of KEY=VALUE lines for each unit.
func parseUnits(text string) map[string]Unit {
	units := map[string]Unit{}
	for block := range strings.SplitSeq(text, "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			fields[key] = value
		}
		if fields["Id"] == "" {
			continue
		}
		restarts, _ := strconv.Atoi(fields["NRestarts"]) // missing means 0
		units[fields["Id"]] = Unit{fields["LoadState"], fields["ActiveState"], fields["SubState"], fields["Result"], restarts}
	}
	return units
}

// fileHead matches what `tail -v` prints before each file.
var fileHead = regexp.MustCompile(`(?m)^==> (.+) <==(\n|$)`)

type hostsFile struct{ upstream, content string }

func parseHostsFiles(text string) (all []hostsFile) {
	heads := fileHead.FindAllStringSubmatchIndex(text, -1)
	for i, head := range heads {
		file, end := text[head[2]:head[3]], len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		if path.Base(file) == nodeconfig.HostsFile {
			all = append(all, hostsFile{path.Base(path.Dir(file)), text[head[1]:end]})
		}
	}
	return all
}

// parseProbe parses "upstream url status seconds problem".
func parseProbe(line string) (Probe, bool) {
	words := strings.SplitN(line, " ", 5)
	if len(words) < 4 {
		return Probe{}, false
	}
	status, statusErr := strconv.Atoi(words[2])
	seconds, secondsErr := strconv.ParseFloat(words[3], 64)
	probe := Probe{Upstream: words[0], URL: words[1], Status: status, Seconds: seconds, Problem: strings.Join(words[4:], "")}
	return probe, statusErr == nil && secondsErr == nil
}

// fullPercent is the lowest usage in percent at which a file system counts as full. By default the
// kubelet evicts pods from 90 percent on.
const fullPercent = 95

func parseFull(line string) (string, bool) {
	words := strings.Fields(line)
	if len(words) != 6 || !strings.HasPrefix(words[0], "/dev/") && words[0] != "overlay" && words[0] != "tmpfs" {
		return "", false
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(words[4], "%"))
	return words[5] + " (" + words[4] + ")", err == nil && percent >= fullPercent
}

// parseRoute parses a line of `ip route` that begins with a CIDR. It returns the CIDR and the line.
func parseRoute(line string) ([2]string, bool) {
	destination, _, _ := strings.Cut(line, " ")
	_, err := netip.ParsePrefix(destination)
	return [2]string{destination, line}, err == nil
}

// parseTable returns the name of a table that begins in this line of `nft list ruleset`.
func parseTable(line string) (string, bool) {
	name, found := strings.CutPrefix(line, "table ")
	return strings.TrimSpace(strings.TrimSuffix(name, "{")), found
}

// parseStopped parses a line of `ps -o pid,stat,etime,args` about a stopped process. State T means
// stopped by a signal, and t by a debugger.
func parseStopped(line string) (string, bool) {
	words := strings.Fields(line)
	if len(words) < 4 || words[1][0] != 'T' && words[1][0] != 't' {
		return "", false
	}
	return strings.Join(words[3:], " "), true
}
