package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// The files that Write creates.
const (
	SummaryFile = "summary.json"
	JUnitFile   = "junit.xml"
	HTMLFile    = "index.html"
)

// setup names the folder with the artifacts of a testbed that did not come up.
const setup = "setup"

// artifactFiles are the files of a scenario's folder that index.html links to.
var artifactFiles = []string{"index.md", "timeline.txt", "transcript.txt"}

// Write renders the report into dir, which it creates if it does not exist, and links to the
// artifacts that lie in folders below it. It replaces each file atomically. A file that cannot be
// written does not keep Write from writing the others.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the folder of the report: %w", err)
	}
	linked := *r
	linked.Artifacts = r.findArtifacts(dir)
	summary, summaryErr := r.Summary()
	junit, junitErr := r.JUnit()
	page, pageErr := linked.HTML()
	return errors.Join(summaryErr, junitErr, pageErr,
		file.Replace(filepath.Join(dir, SummaryFile), summary, 0o644),
		file.Replace(filepath.Join(dir, JUnitFile), junit, 0o644),
		file.Replace(filepath.Join(dir, HTMLFile), page, 0o644),
	)
}

func (r *Report) findArtifacts(dir string) map[string][]string {
	found := map[string][]string{}
	for _, s := range append([]Scenario{{Name: setup}}, r.Scenarios...) {
		for _, name := range artifactFiles {
			if _, err := os.Stat(filepath.Join(dir, s.Name, name)); err == nil {
				found[s.Name] = append(found[s.Name], name)
			}
		}
	}
	return found
}
