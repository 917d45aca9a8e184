package bundle

import (
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
	"github.com/gardener-extensions/registry-cache/kind/logline"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Files of a node, in its folder.
const (
	UnitsFile  = "units.txt"
	CertsFile  = "certs.d.txt"
	ScriptUnit = "configure-containerd-registries.service"
	ProbeFile  = "probe.txt"
	DiskFile   = "disk.txt"
	RouteFile  = "network.txt"
	// FirewallFile is what nft lists, ProcessFile what ps does.
	FirewallFile = "firewall.txt"
	ProcessFile  = "processes.txt"
	// ConfigFile is what `containerd config dump` prints.
	ConfigFile = "containerd-config.toml"
)

// Node is one machine.
type Node struct {
	Name string
	// Units are the states of units by their names, with the suffix .service. UnitsKnown says that they could be asked for.
	Units      map[string]Unit
	UnitsKnown bool
	// Mirrors are the hosts.toml files, HostsFiles what is in them, by upstream. MirrorsKnown says that somebody looked.
	Mirrors      []hostsfile.Mirror
	HostsFiles   map[string]string
	MirrorsKnown bool
	// Config is where containerd looks for hosts.toml files; nil if that is not known.
	Config *Config
	// Registries are what the arguments of the script's unit name; nil without the unit.
	Registries []nodeconfig.Registry
	// Probes are what the node got when it asked the hosts of its hosts.toml files.
	Probes []Probe
	// Routes are the lines of `ip route`, by their destinations.
	Routes map[string]string
	// Tables are the tables of the firewall, "ip filter" for example.
	Tables []string
	// Stopped are the command lines of processes that are stopped, by SIGSTOP or a debugger.
	Stopped []string
	// Full are file systems of which at least 95 percent are used: where they are mounted, with the percentage.
	Full []string
}

// Unit is the state of a systemd unit.
type Unit struct {
	Load, Active, Sub, Result string
	Restarts                  int
}

// Probe is an answer, or none, to GET /v2/ of a host that a hosts.toml names.
type Probe struct {
	Upstream, URL string
	// Status is the HTTP status; 0 without an answer, and Problem says why.
	Status  int
	Seconds float64
	Problem string
}

// Worker says whether it is a machine of a worker pool of the shoot, by the name that kind gives.
func (n Node) Worker() bool { return strings.Contains(n.Name, "-shoot-worker") }

// File is the path of one of its files in the bundle.
func (n Node) File(name string) string { return path.Join(NodeFolder, n.Name, name) }

// JournalFile is that of the journal of a unit.
func (n Node) JournalFile(unit string) string { return n.File("journal/" + unit + ".log") }

// Journal returns the lines of the journal of a unit, the oldest first.
func (b *Bundle) Journal(n Node, unit string) []logline.Line {
	return b.lines(n.JournalFile(unit), logline.Journal)
}

// ContainerLog returns the lines of the log of a container.
func (b *Bundle) ContainerLog(file string) []logline.Line { return b.lines(file, logline.Container) }

func (b *Bundle) lines(file string, read func(string) (logline.Line, bool)) []logline.Line {
	content, err := fs.ReadFile(b.Files, file)
	if err != nil {
		return nil
	}
	var all []logline.Line
	for text := range strings.Lines(string(content)) {
		if line, ok := read(text); ok {
			all = append(all, line)
		}
	}
	return all
}

func readNode(files fs.FS, name string) Node {
	n := Node{Name: name}
	units := text(files, n.File(UnitsFile))
	n.Units, n.UnitsKnown = parseUnits(units), units != ""
	certs := text(files, n.File(CertsFile))
	n.MirrorsKnown, n.HostsFiles = certs != "", map[string]string{}
	for _, found := range parseHostsFiles(certs) {
		n.Mirrors = append(n.Mirrors, hostsfile.Parse(found.upstream, []byte(found.content)))
		n.HostsFiles[found.upstream] = found.content
	}
	n.Config = parseConfig(text(files, n.File(ConfigFile)))
	if registries, err := nodeconfig.ParseUnit(text(files, n.File(ScriptUnit))); err == nil {
		n.Registries = registries
	}
	n.Probes = parseProbes(text(files, n.File(ProbeFile)))
	n.Routes = parseRoutes(text(files, n.File(RouteFile)))
	n.Tables = parseTables(text(files, n.File(FirewallFile)))
	n.Stopped = parseStopped(text(files, n.File(ProcessFile)))
	n.Full = parseDisk(text(files, n.File(DiskFile)))
	return n
}

// parseUnits reads what `systemctl show` prints: one block of KEY=VALUE a unit.
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
		restarts, _ := strconv.Atoi(fields["NRestarts"]) // 0 where it does not say
		units[fields["Id"]] = Unit{fields["LoadState"], fields["ActiveState"], fields["SubState"], fields["Result"], restarts}
	}
	return units
}

// fileHead is what `tail -v` prints before each file.
var fileHead = regexp.MustCompile(`(?m)^==> (.+) <==(\n|$)`)

// hostsFile is a hosts.toml.
type hostsFile struct{ upstream, content string }

// parseHostsFiles reads the hosts.toml files out of the listing of certs.d.
func parseHostsFiles(text string) []hostsFile {
	var all []hostsFile
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

// parseProbes reads lines "upstream url status seconds problem".
func parseProbes(text string) []Probe {
	var all []Probe
	for line := range strings.Lines(text) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 5)
		if len(words) < 4 {
			continue
		}
		status, statusErr := strconv.Atoi(words[2])
		seconds, secondsErr := strconv.ParseFloat(words[3], 64)
		if statusErr != nil || secondsErr != nil {
			continue
		}
		probe := Probe{Upstream: words[0], URL: words[1], Status: status, Seconds: seconds}
		if len(words) == 5 {
			probe.Problem = words[4]
		}
		all = append(all, probe)
	}
	return all
}

// fullPercent is from where on a file system counts as full: the kubelet evicts from 90 on, by default.
const fullPercent = 95

// parseDisk reads `df`.
func parseDisk(text string) []string {
	var full []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 6 || !strings.HasPrefix(words[0], "/dev/") && words[0] != "overlay" && words[0] != "tmpfs" {
			continue
		}
		if percent, err := strconv.Atoi(strings.TrimSuffix(words[4], "%")); err == nil && percent >= fullPercent {
			full = append(full, words[5]+" ("+words[4]+")")
		}
	}
	return full
}
