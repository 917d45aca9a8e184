package timeline

import (
	"fmt"
	"io"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/logline"
)

const clock = "15:04:05.000"

// Write prints one line for each entry, and a heading for each day. Times are UTC.
func Write(w io.Writer, entries []Entry) error {
	day := ""
	width := 0
	for _, e := range entries {
		width = max(width, len(e.Source))
	}
	for _, e := range entries {
		if now := e.Time.UTC().Format(time.DateOnly); now != day {
			day = now
			if _, err := fmt.Fprintf(w, "--- %s UTC\n", day); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "%s %s %-*s  %s\n", e.Time.UTC().Format(clock), e.mark(), width, e.Source, e.Text+e.repetitions()); err != nil {
			return err
		}
	}
	return nil
}

// mark returns "E" for an error and "W" for a warning.
func (e Entry) mark() string {
	switch e.Level {
	case logline.Error:
		return "E"
	case logline.Warning:
		return "W"
	default:
		return " "
	}
}

func (e Entry) repetitions() string {
	if e.Count < 2 {
		return ""
	}
	if e.Last.Sub(e.Time) < time.Millisecond {
		return fmt.Sprintf("  (%d times)", e.Count)
	}
	return fmt.Sprintf("  (%d times until %s)", e.Count, e.Last.UTC().Format(clock))
}
