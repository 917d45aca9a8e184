package diagnostics

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
)

const (
	// leadTime: the timeline in the index starts this long before Bundle.Since.
	leadTime     = time.Minute
	shownEntries = 250
	reasonLines  = 12
)

type index struct {
	title   string
	began   time.Time
	folders []*Folder
	conclusions
}

// IndexTitle is the beginning of every IndexFile. A folder with such a file is a bundle.
const IndexTitle = "# Diagnostics: "

// render returns the index in Markdown. Its readers may know neither the testbed nor what was
// changed in it. What was not collected comes early, so that readers do not search for it.
func (i *index) render() string {
	var text strings.Builder
	fmt.Fprintf(&text, IndexTitle+"%s\n\nCollected %s. Times are UTC. This page is computed from the files in this folder. "+
		"`testbed` is the command line of the testbed.\n", i.title, i.began.UTC().Format(time.RFC3339))
	if i.bundle != nil {
		i.reason(&text)
		i.problems(&text)
	}
	i.missing(&text)
	if i.bundle != nil {
		i.state(&text)
		i.section(&text, "Versions", versions(i.bundle))
		i.section(&text, "Metrics", i.bundle.Metrics)
		i.recentEntries(&text)
	}
	i.files(&text)
	return text.String()
}

func (i *index) reason(text *strings.Builder) {
	if i.bundle.Reason == "" {
		return
	}
	lines := strings.Split(i.bundle.Reason, "\n")
	shown := strings.Join(lines[:min(len(lines), reasonLines)], "\n")
	fmt.Fprintf(text, "\n## Why this was collected\n\n%s\nFull text: [%s](%s)\n", block(shown), bundle.ReasonFile, bundle.ReasonFile)
}

func (i *index) problems(text *strings.Builder) {
	text.WriteString("\n## What is wrong now\n\n")
	certain := 0
	for certain < len(i.findings) && i.findings[certain].Certain {
		certain++
	}
	if certain == 0 {
		text.WriteString("No check found a problem.\n")
	}
	list(text, i.findings[:certain])
	if certain < len(i.findings) {
		text.WriteString("\nHints, which can be causes or effects:\n\n")
		list(text, i.findings[certain:])
	}
	var checked []string
	for _, check := range finding.Checks() {
		checked = append(checked, check.Name)
	}
	fmt.Fprintf(text, "\nChecked: %s.\n", strings.Join(checked, "; "))
	if i.bundle.Hibernated() {
		text.WriteString("\nThe Shoot is hibernated: its machines are stopped, which is not a problem.\n")
	}
	if !i.bundle.FaultsKnown {
		text.WriteString("\nIt is unknown whether a fault is injected.\n")
	}
}

func list(text *strings.Builder, all []finding.Finding) {
	for n, f := range all {
		fmt.Fprintf(text, "%d. %s", n+1, escape(f.Problem))
		if f.File != "" {
			fmt.Fprintf(text, " ([%s](%s))", path.Base(f.File), f.File)
		}
		text.WriteString("\n")
		for _, detail := range f.Details {
			fmt.Fprintf(text, "   - %s\n", escape(oneLine(detail)))
		}
		if f.Fix != "" {
			fmt.Fprintf(text, "   - what to do: %s\n", f.Fix)
		}
	}
}

func escape(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "`", "\\`").Replace(text)
}

func (i *index) missing(text *strings.Builder) {
	heading := "\n## Not collected\n\n"
	for _, folder := range i.folders {
		for _, failure := range folder.failures {
			fmt.Fprintf(text, "%s- %s\n", heading, oneLine(failure.Error()))
			heading = ""
		}
	}
}

func (i *index) section(text *strings.Builder, title, content string) {
	if content != "" {
		fmt.Fprintf(text, "\n## %s\n\n%s", title, block(content))
	}
}

func (i *index) recentEntries(text *strings.Builder) {
	recent := timeline.Since(i.timeline, i.bundle.Since.Add(-leadTime), shownEntries)
	if len(recent) == 0 {
		return
	}
	var lines bytes.Buffer
	_ = timeline.Write(&lines, recent) // a buffer does not fail
	fmt.Fprintf(text, "\n## Timeline\n\nThe newest %d of %d entries; all are in [%s](%s). E is an error, W a warning.\n\n%s",
		len(recent), len(i.timeline), timelineFile, timelineFile, block(strings.TrimRight(lines.String(), "\n")))
	files := map[string]string{}
	for _, e := range recent {
		files[e.Source] = e.File
	}
	var links []string
	for _, source := range sortedKeys(files) {
		links = append(links, fmt.Sprintf("[%s](%s)", source, files[source]))
	}
	fmt.Fprintf(text, "\nSources: %s\n", strings.Join(links, ", "))
}

// block returns the text as a fenced code block. It replaces fences in the text.
func block(text string) string {
	return "```text\n" + strings.ReplaceAll(text, "```", "'''") + "\n```\n"
}

func (i *index) files(text *strings.Builder) {
	text.WriteString("\n## Files\n")
	for n, folder := range i.folders {
		if n == 0 || folder.name != i.folders[n-1].name {
			fmt.Fprintf(text, "\n### %s (%.1f s)\n\n", cmp.Or(folder.name, "General"), folder.seconds)
		}
		if len(folder.files) == 0 && folder.name != "" {
			text.WriteString("nothing\n")
		}
		for _, f := range folder.files {
			fmt.Fprintf(text, "- [%s](%s) %s\n", f.name, path.Join(folder.name, f.name), size(f.size))
		}
	}
}

// oneLine joins lines and cuts long text: the output of a failed command must not break a list.
func oneLine(s string) string {
	const limit = 1000
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

func size(bytes int) string {
	switch {
	case bytes == 0:
		return "(empty)"
	case bytes < 1<<10:
		return fmt.Sprintf("(%d B)", bytes)
	default:
		return fmt.Sprintf("(%d KiB)", bytes>>10)
	}
}
