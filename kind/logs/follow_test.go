package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// container is a fake with one log for each start of the container. All logs except the last have
// ended. As in Kubernetes, the start of a window is rounded down to a whole second.
type container struct {
	runs  [][]string
	opens int
}

func (c *container) stream(name string) Stream {
	return Stream{Name: name, Parse: Container, Open: func(ctx context.Context, window Window, out io.Writer) error {
		run := c.runs[min(c.opens, len(c.runs)-1)]
		c.opens++
		for _, text := range run {
			if line, _ := Container(text); line.Time.Before(window.Since.Truncate(time.Second)) {
				continue
			}
			fmt.Fprintln(out, text)
		}
		if c.opens >= len(c.runs) {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
}

// follow calls Follow for a duration and returns the lines. Half a findInterval is added, so that
// Follow does not end during a call of find.
func follow(t *testing.T, find func(context.Context) ([]Stream, error), since time.Time, during time.Duration) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during+findInterval/2)
	defer cancel()
	var lines []string
	err := Follow(ctx, find, since, func(line Line) { lines = append(lines, line.Source+" "+line.Text) })
	return lines, err
}

// TestFollow checks that Follow opens new streams, reopens ended streams, and repeats no lines.
func TestFollow(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 2, 0, time.UTC)
	for _, tc := range []struct {
		name  string
		since time.Time
		pods  []map[string]*container // at each call of find
		want  []string
	}{
		{
			"continues", time.Time{},
			[]map[string]*container{{"a": {runs: [][]string{{at(1) + " one"}}}, "b": {runs: [][]string{{at(2) + " two"}}}}},
			[]string{"a one", "b two"},
		},
		{
			"the same container was restarted", time.Time{},
			[]map[string]*container{{"a": {runs: [][]string{
				{at(1) + " one", at(2) + " two"},
				{at(1) + " one", at(2) + " two", at(2)[:19] + ".5Z half", at(3) + " three"},
			}}}},
			[]string{"a half", "a one", "a three", "a two"},
		},
		{
			"another container with the same name", start,
			[]map[string]*container{{"a": {runs: [][]string{{at(1) + " before", at(2) + " two"}, nil, {at(4) + " four"}}}}},
			[]string{"a four", "a two"},
		},
		{
			"ended without a line", start,
			[]map[string]*container{{"a": {runs: [][]string{{at(1) + " before"}, {at(1) + " before", at(2) + " two"}}}}},
			[]string{"a two"},
		},
		{
			"another pod", start,
			[]map[string]*container{
				{"a": {runs: [][]string{{at(2) + " two"}, nil}}},
				{},
				{"b": {runs: [][]string{{at(1) + " before", at(3) + " three"}}}},
			},
			[]string{"a two", "b three"},
		},
		{
			"one more pod", start,
			[]map[string]*container{
				{"a": {runs: [][]string{{at(2) + " two"}}}},
				{"a": {runs: [][]string{{at(9) + " opened twice"}}}, "b": {runs: [][]string{{at(3) + " three"}}}},
			},
			[]string{"a two", "b three"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				lines, err := follow(t, func(context.Context) ([]Stream, error) {
					var streams []Stream
					for name, pod := range tc.pods[min(calls, len(tc.pods)-1)] {
						streams = append(streams, pod.stream(name))
					}
					calls++
					return streams, nil
				}, tc.since, time.Minute)
				slices.Sort(lines)
				if err != nil || !slices.Equal(lines, tc.want) {
					t.Errorf("lines %q, error %v; want %q", lines, err, tc.want)
				}
			})
		})
	}
}

// TestFollowInterval checks that an ended stream is opened once per interval.
func TestFollowInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		ended := Stream{Name: "a", Parse: Container, Open: func(context.Context, Window, io.Writer) error {
			opened++
			return nil
		}}
		_, err := follow(t, func(context.Context) ([]Stream, error) { return []Stream{ended}, nil }, time.Time{}, time.Hour)
		if want := 1 + int(time.Hour/findInterval); err != nil || opened != want {
			t.Errorf("it was opened %d times in an hour, error %v; want %d", opened, err, want)
		}
	})
}

// TestFollowFails checks that Follow fails at once if nothing can be read, and after two minutes if
// something could be read before.
func TestFollowFails(t *testing.T) {
	unreadable := Stream{Name: "a", Parse: Container, Open: func(context.Context, Window, io.Writer) error { return errors.New("no such pod") }}
	refused := errors.New("connection refused")
	hangs := func(ctx context.Context) ([]Stream, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, tc := range []struct {
		name  string
		find  func(context.Context) ([]Stream, error)
		after time.Duration
		want  string
	}{
		{"no stream can be read", func(context.Context) ([]Stream, error) { return []Stream{unreadable}, nil }, findInterval, "log of a: no such pod"},
		{"find fails", func(context.Context) ([]Stream, error) { return nil, refused }, findInterval, "find logs: connection refused"},
		{"find hangs", hangs, findTimeout + findInterval, "find logs: no answer after 10s"},
		{
			"one stream can be read",
			func(context.Context) ([]Stream, error) {
				return []Stream{unreadable, newStream("b", nil, at(1)+" one")}, refused
			},
			time.Hour, "",
		},
		{"no streams", func(context.Context) ([]Stream, error) { return nil, nil }, time.Hour, ""},
		{"fails for a while", failingFind(30*time.Second, 2*time.Minute, refused), time.Hour, ""},
		{"fails permanently", failingFind(30*time.Second, time.Hour, refused), 2*time.Minute + 30*time.Second, "no log could be read for 2m0s, run `testbed doctor`"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := follow(t, tc.find, time.Time{}, time.Hour)
				if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				if after := time.Since(began); after < tc.after || after > tc.after+2*findInterval {
					t.Errorf("after %s, want %s", after, tc.after)
				}
			})
		})
	}
}

// failingFind returns a find function for a stream that ends after ten seconds. The find function
// fails during a period, whose start and end are given as times since the first call.
func failingFind(from, until time.Duration, failure error) func(context.Context) ([]Stream, error) {
	var began time.Time
	ends := Stream{Name: "a", Parse: Container, Open: func(ctx context.Context, _ Window, _ io.Writer) error {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		return nil
	}}
	return func(context.Context) ([]Stream, error) {
		if began.IsZero() {
			began = time.Now()
		}
		if after := time.Since(began); after >= from && after < until {
			return nil, failure
		}
		return []Stream{ends}, nil
	}
}
