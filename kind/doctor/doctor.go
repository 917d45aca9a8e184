package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

// Examine examines the machine, the Docker Engine and the testbed, and reports what is wrong and
// how to fix it. Examine takes no lock and changes nothing, except that it restarts a dead engine
// that the testbed started. An error means that an examination was not possible.
func Examine(ctx context.Context, t *kind.Testbed) (*Report, error) {
	report := &Report{}
	machine, err := examineMachine(ctx, t)
	if err != nil {
		return nil, err
	}
	report.Add("this machine", machine...)
	found, err := engine.Attach(ctx)
	report.Add("Docker Engine", engineItem(found, err))
	if found == nil {
		return report, nil
	}
	items, err := examineTestbed(ctx, t)
	if err != nil {
		return nil, err
	}
	report.Add("testbed "+t.Prefix, items...)
	return report, nil
}

func engineItem(found *engine.Engine, err error) Item {
	missing := (*engine.Missing)(nil)
	switch {
	case errors.As(err, &missing):
		return Item{Mark: Problem, Text: missing.What, Fix: missing.Fix}
	case err != nil:
		text, _, _ := strings.Cut(err.Error(), "\n")
		return Item{Mark: Problem, Text: text, Fix: "see the log of dockerd; `testbed up` restarts the testbed's engine"}
	case found == nil:
		return Item{
			Mark: Notice, Text: "no Docker Engine answers",
			Fix: "run `testbed up` (as root on Debian and Ubuntu it installs one), or install and start one",
		}
	}
	return Item{Mark: Fine, Text: fmt.Sprintf("%s, API %s", found.Version, found.APIVersion)}
}

// examineMachine compares the machine with what Up still needs.
func examineMachine(ctx context.Context, t *kind.Testbed) ([]Item, error) {
	requirements := preflight.Defaults()
	if disk, err := bringup.DiskNeeded(ctx, t); err == nil { // if it fails, the section of the engine shows why
		requirements.Disk = disk
	}
	host, failed, err := preflight.Inspect(ctx, requirements)
	if err != nil {
		return nil, err
	}
	return Machine(host, failed), nil
}

func examineTestbed(ctx context.Context, t *kind.Testbed) ([]Item, error) {
	items := examineProcesses(t)
	dir, err := os.MkdirTemp("", "testbed-doctor-")
	if err != nil {
		return nil, fmt.Errorf("create a folder for the diagnostics: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exported, err := diagnostics.Export(ctx, t, filepath.Join(dir, t.Prefix), diagnostics.Temporary)
	if errors.Is(err, kind.ErrDown) {
		return append(items, Item{Mark: Notice, Text: "the testbed is not up", Fix: "run testbed up"}), nil
	}
	if other := (*kind.OtherCheckoutError)(nil); errors.As(err, &other) {
		return append(items, Item{
			Mark: Notice, Text: "the testbed belongs to " + other.State.Directory(), Fix: "run testbed doctor there, or use another testbed with --prefix NAME",
		}), nil
	}
	if err != nil {
		return nil, err
	}
	items = append(items, Findings(exported.Findings)...)
	if exported.Missing != "" {
		items = append(items, Item{
			Mark: Notice, Text: "a part of the testbed could not be examined", Details: []string{exported.Missing},
			Fix: "run testbed up, which repairs what is not healthy",
		})
	}
	return items, nil
}

// examineProcesses reports a command that works on the testbed, or processes that an interrupted
// command left running.
func examineProcesses(t *kind.Testbed) []Item {
	left, err := command.Marked("/proc", t.Prefix)
	if err != nil || len(left) == 0 {
		return nil
	}
	return []Item{{
		Mark: Notice, Text: fmt.Sprintf("processes of an interrupted command still run: %v", left),
		Fix: "testbed up continues, testbed down ends them",
	}}
}

// Mark is the severity of an item.
type Mark string

// The marks.
const (
	Fine    Mark = "fine"
	Problem Mark = "problem"
	Notice  Mark = "notice" // worth a look, but not a problem by itself
)

// Item is the result of one check.
type Item struct {
	Mark    Mark     `json:"mark"`
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
	Fix     string   `json:"fix,omitempty"` // what the user can do
}

// Section contains the items of one subject, for example the machine.
type Section struct {
	Title string `json:"title"`
	Items []Item `json:"items"`
}

// Report is the output of `testbed doctor`.
type Report struct {
	Sections []Section `json:"sections"`
}

// Add adds a section.
func (r *Report) Add(title string, items ...Item) {
	r.Sections = append(r.Sections, Section{Title: title, Items: append([]Item{}, items...)})
}

// Err returns an error with the number of problems, or nil if there are none.
func (r *Report) Err() error {
	count := 0
	for _, section := range r.Sections {
		for _, item := range section.Items {
			if item.Mark == Problem {
				count++
			}
		}
	}
	switch count {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 problem")
	default:
		return fmt.Errorf("%d problems", count)
	}
}

// Machine returns the items of a host: a summary, or the failed checks if there are any.
func Machine(host preflight.Host, failed []preflight.Failure) []Item {
	if len(failed) == 0 {
		return []Item{{Mark: Fine, Text: host.String()}}
	}
	var items []Item
	for _, failure := range failed {
		items = append(items, Item{Mark: Problem, Text: failure.Problem, Fix: failure.Fix})
	}
	return items
}

// Findings returns the items of a testbed. A finding that is not certain becomes a notice.
func Findings(all []finding.Finding) []Item {
	var items []Item
	certain := false
	for _, f := range all {
		mark := Notice
		if f.Certain {
			mark, certain = Problem, true
		}
		items = append(items, Item{Mark: mark, Text: f.Problem, Details: f.Details, Fix: f.Fix})
	}
	if certain {
		return items
	}
	fine := Item{Mark: Fine, Text: "no problem found in:"}
	for _, check := range finding.Checks() {
		fine.Details = append(fine.Details, check.Name)
	}
	return append([]Item{fine}, items...)
}

var signs = map[Mark]string{Fine: "✓", Problem: "✗", Notice: "!"}

// Write prints the report. The fix of an item is on the same line as its text, or on a separate
// line if the text is a sentence or the item has details.
func (r *Report) Write(w io.Writer) error {
	var text strings.Builder
	for _, section := range r.Sections {
		fmt.Fprintln(&text, section.Title)
		for _, item := range section.Items {
			line, fix := item.Text, item.Fix
			if fix != "" && len(item.Details) == 0 && !strings.HasSuffix(line, ".") {
				line, fix = line+": "+fix, ""
			}
			fmt.Fprintf(&text, " %s %s\n", signs[item.Mark], line)
			for _, detail := range item.Details {
				fmt.Fprintf(&text, "     %s\n", strings.Join(strings.Fields(detail), " "))
			}
			if fix != "" {
				fmt.Fprintf(&text, "     -> %s\n", fix)
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
