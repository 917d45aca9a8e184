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
	// before is how much of what came before is shown of the timeline, shownEntries how many entries it has at most.
	before       = time.Minute
	shownEntries = 250
	// reasonLines of the reason are shown.
	reasonLines = 12
)

// index is what a reader sees first.
type index struct {
	title   string
	began   time.Time
	folders []*Folder
	conclusions
}

// IndexTitle begins each IndexFile: a folder with such a file is a bundle.
const IndexTitle = "# Diagnostics: "

// render returns the index in Markdown, for a reader who knows neither the testbed nor what was done to it: what is wrong, how
// things stand, what happened, where the rest is. What could not be had is said early: it says what not to look for.
func (i *index) render() string {
	var text strings.Builder
	fmt.Fprintf(&text, IndexTitle+"%s\n\nCollected %s. Times are UTC. What is said here is computed from the files of this folder; "+
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
		i.happened(&text)
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
	fmt.Fprintf(text, "\n## Why this was collected\n\n%s\nAll of it: [%s](%s)\n", block(shown), bundle.ReasonFile, bundle.ReasonFile)
}

func (i *index) problems(text *strings.Builder) {
	text.WriteString("\n## What is wrong now\n\n")
	certain, hints := split(i.findings)
	if len(certain) == 0 {
		text.WriteString("Nothing that is looked for was found broken.\n")
	}
	list(text, certain)
	if len(hints) > 0 {
		text.WriteString("\nWhat else stands out, causes and effects alike:\n\n")
		list(text, hints)
	}
	text.WriteString("\nLooked at: ")
	for n, check := range finding.Checks() {
		if n > 0 {
			text.WriteString("; ")
		}
		text.WriteString(check.Name)
	}
	text.WriteString(".\n")
	if i.bundle.Sleeps() {
		text.WriteString("\nThe Shoot hibernates: its machines are stopped, and their absence is no problem.\n")
	}
	if !i.bundle.FaultsKnown {
		text.WriteString("\nWhether a fault was put in on purpose is not known.\n")
	}
}

func split(all []finding.Finding) (certain, hints []finding.Finding) {
	for _, f := range all {
		if f.Certain {
			certain = append(certain, f)
		} else {
			hints = append(hints, f)
		}
	}
	return certain, hints
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

// escape keeps Markdown from reading what programs say.
func escape(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "`", "\\`").Replace(text)
}

func (i *index) missing(text *strings.Builder) {
	failures := 0
	for _, folder := range i.folders {
		for _, failure := range folder.failures {
			if failures == 0 {
				text.WriteString("\n## Not collected\n\n")
			}
			failures++
			fmt.Fprintf(text, "- %s\n", oneLine(failure.Error()))
		}
	}
}

func (i *index) section(text *strings.Builder, title, content string) {
	if content != "" {
		fmt.Fprintf(text, "\n## %s\n\n%s", title, block(content))
	}
}

func (i *index) happened(text *strings.Builder) {
	recent := timeline.Since(i.timeline, i.bundle.Since.Add(-before), shownEntries)
	if len(recent) == 0 {
		return
	}
	var lines bytes.Buffer
	_ = timeline.Write(&lines, recent) // to a buffer
	fmt.Fprintf(text, "\n## Timeline\n\nThe newest %d of %d entries; all are in [%s](%s). E is an error, W a warning.\n\n%s",
		len(recent), len(i.timeline), timelineFile, timelineFile, block(strings.TrimRight(lines.String(), "\n")))
	files := map[string]string{}
	for _, e := range recent {
		files[e.Source] = e.File
	}
	text.WriteString("\nWhere that is from: ")
	for n, source := range sortedKeys(files) {
		if n > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(text, "[%s](%s)", source, files[source])
	}
	text.WriteString("\n")
}

// block is text that Markdown leaves as it is.
func block(text string) string {
	return "```text\n" + strings.ReplaceAll(text, "```", "'''") + "\n```\n"
}

func (i *index) files(text *strings.Builder) {
	text.WriteString("\n## Files\n")
	last, first := "", true
	for _, folder := range i.folders {
		if first || folder.name != last {
			fmt.Fprintf(text, "\n### %s (%.1f s)\n\n", cmp.Or(folder.name, "General"), folder.seconds)
		}
		last, first = folder.name, false
		if len(folder.files) == 0 && folder.name != "" {
			text.WriteString("nothing\n")
		}
		for _, f := range folder.files {
			fmt.Fprintf(text, "- [%s](%s) %s\n", f.name, path.Join(folder.name, f.name), size(f.size))
		}
	}
}

// oneLine keeps a failed command's output from breaking the list.
func oneLine(s string) string {
	const limit = 1000
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

func size(bytes int) string {
	if bytes == 0 {
		return "(empty)"
	}
	if bytes < 1<<10 {
		return fmt.Sprintf("(%d B)", bytes)
	}
	return fmt.Sprintf("(%d KiB)", bytes>>10)
}
