package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// Window says which part of a log is wanted.
type Window struct {
	// Since is from when on; zero is all there is.
	Since time.Time
	// Follow goes on with what is new, until the context ends.
	Follow bool
}

// Stream is one log.
type Stream struct {
	// Name says whose it is, for example "worker2/containerd".
	Name string
	// Open writes the wanted part to out, line by line, and returns when there is no more, or when ctx ends.
	Open func(ctx context.Context, window Window, out io.Writer) error
	// Parse reads a line; one that it does not know is left out.
	Parse func(text string) (Line, bool)
}

// Line is a line of a log.
type Line struct {
	Time   time.Time     `json:"time"`
	Source string        `json:"source"`
	Level  logline.Level `json:"level"`
	// Text is what was written, without the time before it.
	Text string `json:"text"`
}

// Collect returns the lines of all streams in the order of time. What could be read is returned also with an error.
func Collect(ctx context.Context, streams []Stream, since time.Time) ([]Line, error) {
	var (
		mu  sync.Mutex
		all []Line
	)
	err := read(ctx, streams, Window{Since: since}, func(line Line) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, line)
	})
	slices.SortStableFunc(all, func(a, b Line) int { return a.Time.Compare(b.Time) })
	return all, err
}

// maxLine bounds a line, in bytes: of a longer one the rest is left out, and cutMark says so.
const (
	maxLine = 256 << 10
	cutMark = " ... (cut)"
)

// read reads all streams at once; take may be called concurrently.
func read(ctx context.Context, streams []Stream, window Window, take func(Line)) error {
	errs := make([]error, len(streams))
	var running sync.WaitGroup
	for i, stream := range streams {
		running.Go(func() {
			if err := stream.read(ctx, window, take); err != nil {
				errs[i] = fmt.Errorf("log of %s: %w", stream.Name, err)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (s Stream) read(ctx context.Context, window Window, take func(Line)) error {
	reader, writer := io.Pipe()
	opened := make(chan error, 1)
	go func() {
		err := s.Open(ctx, window, writer)
		_ = writer.Close() // of a pipe
		opened <- err
	}()
	lines := bufio.NewReaderSize(reader, maxLine)
	for {
		text, err := nextLine(lines)
		if err != nil { // who writes has closed the pipe
			return <-opened
		}
		line, ok := s.Parse(text)
		if !ok || !window.Since.IsZero() && line.Time.Before(window.Since) {
			continue
		}
		line.Source = s.Name
		take(line)
	}
}

// nextLine returns the next line without its end; of one that fills the reader's buffer the rest is skipped.
func nextLine(lines *bufio.Reader) (string, error) {
	text, more, err := lines.ReadLine()
	if err != nil {
		return "", err
	}
	line := string(text)
	if more {
		line += cutMark
	}
	for more && err == nil { // an error here is that of the next call, too
		_, more, err = lines.ReadLine()
	}
	return line, nil
}

// Journal parses the journal of a unit, Container what `kubectl logs --timestamps` or `docker logs --timestamps` print.
func Journal(text string) (Line, bool) {
	line, ok := logline.Journal(text)
	return Line{Time: line.Time, Level: line.Level, Text: after(text, 2)}, ok
}

// Container is Journal for logs with a time before each line.
func Container(text string) (Line, bool) {
	line, ok := logline.Container(text)
	return Line{Time: line.Time, Level: line.Level, Text: after(text, 1)}, ok
}

// after leaves out the first words.
func after(text string, words int) string {
	for range words {
		i := 0
		for i < len(text) && text[i] != ' ' {
			i++
		}
		text = text[min(len(text), i+1):]
	}
	return text
}

// Format is a line for people.
func (l Line) Format() string {
	return fmt.Sprintf("%s %s  %s", l.Time.UTC().Format("2006-01-02T15:04:05.000Z"), l.Source, l.Text)
}
