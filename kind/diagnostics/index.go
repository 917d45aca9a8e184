package diagnostics

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"
)

// render returns the index in Markdown: failures first, because they say what not to look for, then the files of each
// source.
func render(title string, began time.Time, folders []*Folder) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# Diagnostics: %s\n\nCollected %s.\n", title, began.UTC().Format(time.RFC3339))
	failures := 0
	for _, folder := range folders {
		for _, failure := range folder.failures {
			if failures == 0 {
				text.WriteString("\n## Not collected\n\n")
			}
			failures++
			fmt.Fprintf(&text, "- %s\n", oneLine(failure.Error()))
		}
	}
	for _, folder := range folders {
		fmt.Fprintf(&text, "\n## %s (%.1f s)\n\n", cmp.Or(folder.name, "General"), folder.seconds)
		if len(folder.files) == 0 {
			text.WriteString("nothing\n")
		}
		for _, f := range folder.files {
			fmt.Fprintf(&text, "- [%s](%s) %s\n", f.name, path.Join(folder.name, f.name), size(f.size))
		}
	}
	return text.String()
}

// oneLine keeps a failed command's output from breaking the list.
func oneLine(s string) string {
	const limit = 1000
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = s[:limit] + "…"
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
