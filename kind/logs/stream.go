package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// Window selects a part of a log.
type Window struct {
	Since  time.Time // zero means all lines
	Follow bool      // continue with new lines until the context ends
}

// Stream is one log.
type Stream struct {
	Name string // the name of the source, for example "worker2/containerd"
	// Open writes the lines in the window to out. It returns at the end of the log, or when ctx
	// ends. It may also write older lines, which the caller skips.
	Open func(ctx context.Context, window Window, out io.Writer) error
	// Parse parses a line. It returns false if the line must be skipped.
	Parse func(text string) (Line, bool)
}

// Line is a line of a log.
type Line struct {
	Time   time.Time     `json:"time"`
	Source string        `json:"source"`
	Level  logline.Level `json:"level"`
	Text   string        `json:"text"` // without the time
}

// Collect returns the lines of all streams, sorted by time. If some streams fail, it returns their
// errors and the lines that it could read.
func Collect(ctx context.Context, streams []Stream, since time.Time) ([]Line, error) {
	var (
		mu  sync.Mutex
		all []Line
	)
	take := func(line Line) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, line)
	}
	errs := make([]error, len(streams))
	var running sync.WaitGroup
	for i, stream := range streams {
		running.Go(func() { errs[i] = stream.read(ctx, Window{Since: since}, take) })
	}
	running.Wait()
	slices.SortStableFunc(all, func(a, b Line) int { return a.Time.Compare(b.Time) })
	return all, errors.Join(errs...)
}

const (
	maxLine = 256 << 10    // bytes; longer lines are truncated
	cutMark = " ... (cut)" // is appended to a truncated line
)

func (s Stream) read(ctx context.Context, window Window, take func(Line)) error {
	reader, writer := io.Pipe()
	opened := make(chan error, 1)
	go func() {
		err := s.Open(ctx, window, writer)
		_ = writer.Close() // a pipe does not fail
		opened <- err
	}()
	lines := bufio.NewReaderSize(reader, maxLine)
	for {
		text, err := nextLine(lines)
		if err != nil { // Open has returned
			if err := <-opened; err != nil {
				return fmt.Errorf("log of %s: %w", s.Name, err)
			}
			return nil
		}
		line, ok := s.Parse(text)
		if !ok || !window.Since.IsZero() && line.Time.Before(window.Since) {
			continue
		}
		line.Source = s.Name
		take(line)
	}
}

// nextLine returns the next line without the newline, and truncated to the reader's buffer size.
func nextLine(lines *bufio.Reader) (string, error) {
	text, more, err := lines.ReadLine()
	if err != nil {
		return "", err
	}
	line := string(text)
	if more {
		line += cutMark
	}
	for more && err == nil { // skip the rest of the line; the next call returns an error
		_, more, err = lines.ReadLine()
	}
	return line, nil
}

// Journal parses a line of a unit's journal.
func Journal(text string) (Line, bool) {
	line, ok := logline.Journal(text)
	return Line{Time: line.Time, Level: line.Level, Text: after(text, 2)}, ok
}

// Container parses a line of `kubectl logs --timestamps` or `docker logs --timestamps`.
func Container(text string) (Line, bool) {
	line, ok := logline.Container(text)
	return Line{Time: line.Time, Level: line.Level, Text: after(text, 1)}, ok
}

func after(text string, words int) string {
	for range words {
		_, text, _ = strings.Cut(text, " ")
	}
	return text
}

// Format returns the line as text.
func (l Line) Format() string {
	return fmt.Sprintf("%s %s  %s", l.Time.UTC().Format("2006-01-02T15:04:05.000Z"), l.Source, l.Text)
}
