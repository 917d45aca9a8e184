package bundle

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// Files next to the index.
const (
	ReasonFile    = "reason.txt"
	SinceFile     = "since.txt"
	VersionsFile  = "versions.txt"
	FaultsFile    = "faults.json"
	GardenletFile = "gardenlet.log"
)

// Folders of the sources. MetricsSummary is a file in MetricsFolder: a table that compares metrics.
const (
	SeedFolder     = "seed"
	ShootFolder    = "shoot"
	NodeFolder     = "node"
	UpstreamFolder = "upstream"
	MetricsFolder  = "metrics"
	MetricsSummary = "summary.txt"
)

// Evidence returns the names of all files and folders that Read and its callers use. None of them
// may remain when a new bundle replaces an earlier one.
func Evidence() []string {
	return []string{
		ReasonFile, SinceFile, VersionsFile, FaultsFile, GardenletFile,
		SeedFolder, ShootFolder, NodeFolder, UpstreamFolder, MetricsFolder,
	}
}

const lookBack = 15 * time.Minute

// Bundle contains the parsed files of a bundle.
type Bundle struct {
	Files fs.FS
	// Collected is when the collection began. Findings use it as the current time.
	Collected time.Time
	// Since is the start of the period that the bundle covers: the RFC 3339 time in SinceFile, or
	// 15 minutes before Collected.
	Since time.Time
	// Reason is why the bundle was collected. Versions contains the testbed's versions, one per line.
	Reason, Versions string
	// Faults are the injected faults. FaultsKnown is false if FaultsFile is missing or damaged.
	Faults      []spec.Fault
	FaultsKnown bool
	// Metrics is the content of MetricsSummary.
	Metrics string
	Seed    Cluster
	Shoot   Cluster
	// Nodes are sorted by name, Upstreams by host.
	Nodes     []Node
	Upstreams []Upstream
}

// Read parses the files of a bundle that was collected at the given time. The field of a missing or
// damaged file stays empty.
func Read(files fs.FS, collected time.Time) *Bundle {
	b := &Bundle{
		Files: files, Collected: collected, Reason: text(files, ReasonFile), Versions: text(files, VersionsFile),
		Metrics: text(files, path.Join(MetricsFolder, MetricsSummary)),
		Seed:    readCluster(files, SeedFolder), Shoot: readCluster(files, ShootFolder),
	}
	var err error
	if b.Since, err = time.Parse(time.RFC3339, text(files, SinceFile)); err != nil {
		b.Since = collected.Add(-lookBack)
	}
	if content, err := fs.ReadFile(files, FaultsFile); err == nil {
		b.Faults, err = spec.Decode(content)
		b.FaultsKnown = err == nil
	}
	for _, name := range folders(files, NodeFolder) {
		b.Nodes = append(b.Nodes, readNode(files, name))
	}
	for _, host := range folders(files, UpstreamFolder) {
		b.Upstreams = append(b.Upstreams, readUpstream(files, host))
	}
	return b
}

// Workers returns the nodes of the Shoot's worker pools.
func (b *Bundle) Workers() []Node {
	return slices.DeleteFunc(slices.Clone(b.Nodes), func(n Node) bool { return !n.Worker() })
}

// ShortName removes the testbed's name from the name of a node. For a node of the shoot it also
// removes "shoot-".
func (b *Bundle) ShortName(node string) string {
	if i := strings.Index(node, "-seed-"); i >= 0 {
		return node[i+1:]
	}
	if _, short, found := strings.Cut(node, "-shoot-"); found {
		return short
	}
	return node
}

// text returns the content of a file without surrounding white space; "" if it cannot be read.
func text(files fs.FS, name string) string {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// Parse calls the function parse for each line of a file, without surrounding white space. It
// returns the values for which the function returned true, or no values if the file cannot be read.
func Parse[T any](files fs.FS, name string, parse func(line string) (T, bool)) (all []T) {
	for line := range strings.Lines(text(files, name)) {
		if value, ok := parse(strings.TrimSpace(line)); ok {
			all = append(all, value)
		}
	}
	return all
}

func find[T any](all []T, match func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(all, match); i >= 0 {
		return all[i], true
	}
	return found, false
}

func folders(files fs.FS, folder string) (names []string) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}
