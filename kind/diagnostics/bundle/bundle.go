package bundle

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// Files beside the index. What is not there was not collected.
const (
	ReasonFile    = "reason.txt"
	SinceFile     = "since.txt"
	VersionsFile  = "versions.txt"
	FaultsFile    = "faults.json"
	GardenletFile = "gardenlet.log"
)

// Folders of the sources.
const (
	SeedFolder     = "seed"
	ShootFolder    = "shoot"
	NodeFolder     = "node"
	UpstreamFolder = "upstream"
	MetricsFolder  = "metrics"
	// MetricsSummary is the file in it that compares the metrics before and now.
	MetricsSummary = "summary.txt"
)

// Evidence are the names, in the folder of a bundle, of all that Read and its callers draw conclusions from: a new bundle must not keep
// any of an earlier one.
func Evidence() []string {
	return []string{
		ReasonFile, SinceFile, VersionsFile, FaultsFile, GardenletFile,
		SeedFolder, ShootFolder, NodeFolder, UpstreamFolder, MetricsFolder,
	}
}

// lookBack is how long before a bundle what it is about began, if nobody says.
const lookBack = 15 * time.Minute

// Bundle is what the files say.
type Bundle struct {
	// Files are the files themselves.
	Files fs.FS
	// Collected is when collecting began: what is said of "now" holds at that time.
	Collected time.Time
	// Since is from when on what happened belongs to what the bundle is about: the time in SinceFile, as RFC 3339, else a quarter
	// of an hour before it was collected.
	Since time.Time
	// Reason is why the bundle was made, Versions what the testbed consists of; texts of several lines.
	Reason, Versions string
	// Faults are those that held, and FaultsKnown says that somebody looked.
	Faults      []spec.Fault
	FaultsKnown bool
	// Metrics is the table of the caches' and the extension's metrics, before and now.
	Metrics string
	Seed    Cluster
	Shoot   Cluster
	// Nodes are ordered by name.
	Nodes []Node
	// Upstreams are ordered by host.
	Upstreams []Upstream
}

// Read reads a bundle that was collected at that time.
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

// Workers are the machines of the shoot that pods of its owner run on.
func (b *Bundle) Workers() []Node {
	return slices.DeleteFunc(slices.Clone(b.Nodes), func(n Node) bool { return !n.Worker() })
}

// Cached are the upstreams that the Extension's status names, with their endpoints: what nodes should have.
func (b *Bundle) Cached() []Cached {
	for _, extension := range b.Seed.Extensions {
		if extension.Namespace == ShootNamespace && extension.Spec.Type == v1alpha3.ExtensionType {
			return cachedOf(extension)
		}
	}
	return nil
}

// ShortName leaves out what the names of all nodes begin with.
func (b *Bundle) ShortName(node string) string {
	for _, part := range []string{"-seed-", "-shoot-"} {
		if i := strings.Index(node, part); i >= 0 {
			if part == "-seed-" {
				return node[i+1:]
			}
			return node[i+len(part):]
		}
	}
	return node
}

// text returns a file's content without white space around it; "" if it is missing.
func text(files fs.FS, name string) string {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// folders are the names of the folders in a folder, in order.
func folders(files fs.FS, folder string) []string {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// Has says whether a file is there.
func (b *Bundle) Has(name string) bool {
	info, err := fs.Stat(b.Files, path.Clean(name))
	return err == nil && !info.IsDir()
}
