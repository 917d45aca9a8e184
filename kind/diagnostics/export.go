package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/fault"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// exportTimeout is the time limit of Export. Each source has its own limit, sourceTimeout.
const exportTimeout = 2 * time.Minute

// OccupiedError reports a folder with files that are not a bundle.
type OccupiedError struct{ Folder string }

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("%s has files that are not a bundle: name an empty or missing folder", e.Folder)
}

// UsageError marks the error as a usage error: internal/program then exits with code 2.
func (*OccupiedError) UsageError() {}

// Bundle is the result of Export.
type Bundle struct {
	// Index is the path of the file to read first.
	Index string `json:"index"`
	// Findings are problems and hints.
	Findings []finding.Finding `json:"findings"`
	// Missing lists what could not be collected; "" if nothing is missing.
	Missing string `json:"missing,omitempty"`
}

// Option is an option of Export.
type Option int

// Temporary is for a bundle that the caller removes: the next bundle is not compared with it.
const Temporary Option = iota

// Export connects to the existing parts of the testbed and writes a bundle to the folder, see
// Diagnose. If the folder exists, it must be empty or a bundle. Export replaces that bundle and
// keeps other files. For any other folder the error is an *OccupiedError.
//
// Export takes no lock and does not change the testbed. If no part of a testbed exists, Export
// writes nothing, and the error is kind.ErrDown; for a testbed of another checkout it is a
// *kind.OtherCheckoutError. A part that cannot be read causes no error: Bundle.Missing lists it.
func Export(ctx context.Context, t *kind.Testbed, folder string, options ...Option) (*Bundle, error) {
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	ctx, cancel := progress.Within(ctx, exportTimeout, "no bundle")
	defer cancel()
	exported := &Bundle{Index: filepath.Join(folder, IndexFile), Findings: []finding.Finding{}}
	err := t.Recorder.Step(ctx, "export", func(ctx context.Context) error {
		attached := t.AttachParts(ctx)
		if t.Seed == nil && t.Shoot == nil && len(t.Upstreams.All()) == 0 {
			return attached
		}
		began := time.Now()
		if err := errors.Join(attached, diagnose(ctx, t, folder, options, nil)); err != nil {
			exported.Missing = err.Error()
			progress.Note(ctx, "incomplete")
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		exported.Findings = append(exported.Findings, finding.Find(bundle.Read(os.DirFS(folder), began))...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return exported, nil
}

// checkFolder returns an error unless the folder is missing, empty or a bundle.
func checkFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("folder of the bundle: %w", err)
	}
	index, err := os.ReadFile(filepath.Join(folder, IndexFile))
	// A folder that is not a bundle may also contain an index.md.
	if len(entries) > 0 && (err != nil || !strings.HasPrefix(string(index), IndexTitle)) {
		return &OccupiedError{Folder: folder}
	}
	return nil
}

// Diagnose writes a bundle to dir. The sources are the existing parts of the testbed (nodes, both
// clusters, upstreams), the log of gardenlet, the active faults, and the argument more. Diagnose
// replaces an earlier bundle, and stores the metrics for the next one. The error lists what could
// not be collected.
func Diagnose(ctx context.Context, t *kind.Testbed, dir string, more ...Source) error {
	return diagnose(ctx, t, dir, nil, more)
}

func diagnose(ctx context.Context, t *kind.Testbed, dir string, options []Option, more []Source) error {
	err := Collect(ctx, dir, append(sources(t), more...)...)
	if ctx.Err() != nil || slices.Contains(options, Temporary) {
		return err // after Ctrl-C the folder may still contain the earlier bundle's metrics
	}
	return errors.Join(err, KeepMetrics(dir, t.State.Metrics()))
}

func sources(t *kind.Testbed) []Source {
	all := []Source{
		Computed(bundle.VersionsFile, func(ctx context.Context) ([]byte, error) { return []byte(testbedVersions(ctx, t)), nil }),
		Tail(bundle.GardenletFile, t.State.GardenletLog()),
	}
	configs := map[string]*rest.Config{}
	for name, c := range map[string]*cluster.Cluster{bundle.SeedFolder: t.Seed, bundle.ShootFolder: t.Shoot} {
		if c == nil {
			continue
		}
		configs[name] = c.RESTConfig()
		all = append(all, Cluster(name, c.RESTConfig()))
		for _, node := range c.Nodes() {
			all = append(all, Node(node))
		}
	}
	if len(configs) > 0 {
		all = append(all, Metrics(configs[bundle.SeedFolder], configs[bundle.ShootFolder], t.State.Metrics()))
	}
	if t.Shoot != nil {
		all = append(all, Computed(bundle.FaultsFile, func(ctx context.Context) ([]byte, error) {
			active, err := fault.List(ctx, t)
			if err != nil {
				return nil, err // do not store an incomplete list: it would look complete
			}
			return spec.Encode(active)
		}))
	}
	for _, registry := range t.Upstreams.All() {
		all = append(all, Upstream(registry))
	}
	return all
}

// testbedVersions returns one version per line. The index adds the versions of nodes and pods.
func testbedVersions(ctx context.Context, t *kind.Testbed) string {
	var lines []string
	inTime, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if out, err := command.Output(inTime, "git", "-C", t.Root, "describe", "--always", "--dirty", "--abbrev=12"); err == nil {
		lines = append(lines, "sources "+strings.TrimSpace(out)) // git fails outside a repository
	}
	lines = append(lines, "gardener "+gardener.Version)
	if t.NodeImage != "" {
		lines = append(lines, "node image "+t.NodeImage)
	}
	if t.Engine != nil {
		lines = append(lines, fmt.Sprintf("docker %s (API %s, cgroup v%d)", t.Engine.Version, t.Engine.APIVersion, t.Engine.CgroupVersion))
	}
	for _, name := range sortedKeys(t.Images) {
		lines = append(lines, t.Images[name].Ref)
	}
	return strings.Join(lines, "\n") + "\n"
}
