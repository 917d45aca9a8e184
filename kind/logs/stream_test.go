package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// newStream returns a stream that prints lines and ends. With Window.Follow the stream ends only
// when its context ends.
func newStream(name string, failure error, lines ...string) Stream {
	return Stream{Name: name, Parse: Container, Open: func(ctx context.Context, window Window, out io.Writer) error {
		for _, line := range lines {
			if _, err := fmt.Fprintln(out, line); err != nil {
				return err
			}
		}
		if window.Follow {
			<-ctx.Done()
			return ctx.Err()
		}
		return failure
	}}
}

func at(second int) string {
	return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC).Format(time.RFC3339Nano)
}

func TestCollect(t *testing.T) {
	a := newStream("a", nil, at(1)+" one", "no line", at(3)+" level=error msg=three")
	b := newStream("b", errors.New("gone"), at(0)+" zero", at(2)+" two")
	lines, err := Collect(t.Context(), []Stream{a, b}, time.Date(2026, 1, 2, 3, 4, 1, 0, time.UTC))
	if err == nil || err.Error() != "log of b: gone" {
		t.Errorf("error %v", err)
	}
	var got []string
	for _, line := range lines {
		got = append(got, line.Format()+" "+string(line.Level))
	}
	want := "2026-01-02T03:04:01.000Z a  one info\n2026-01-02T03:04:02.000Z b  two info\n2026-01-02T03:04:03.000Z a  level=error msg=three error"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// TestLongLine checks that a long line is truncated and later lines are read.
func TestLongLine(t *testing.T) {
	long := newStream("a", nil, at(1)+" "+strings.Repeat("x", 3*maxLine), at(2)+" two", at(3)+" "+strings.Repeat("y", 2*maxLine))
	long.Parse = func(text string) (Line, bool) { return Line{Text: text}, true }
	lines, err := Collect(t.Context(), []Stream{long}, time.Time{})
	if err != nil || len(lines) != 3 {
		t.Fatalf("%d lines, error %v", len(lines), err)
	}
	for i, want := range []string{"x" + cutMark, " two", "y" + cutMark} {
		if text := lines[i].Text; !strings.HasSuffix(text, want) || len(text) > maxLine+len(cutMark) {
			t.Errorf("line %d ends with %q, of %d bytes", i, text[max(0, len(text)-20):], len(text))
		}
	}
}

func TestJournal(t *testing.T) {
	line, ok := Journal(`2026-11-22T00:03:10.4+0000 worker containerd[1]: level=error msg="no"`)
	if !ok || line.Text != `containerd[1]: level=error msg="no"` || line.Level != "error" {
		t.Errorf("line %+v", line)
	}
	if _, ok := Journal("-- No entries --"); ok {
		t.Error("a message of journalctl was parsed as a line")
	}
}

func TestChoose(t *testing.T) {
	var all []Stream
	for _, name := range []string{"registry-alpha-upstream-test-0", "alpha.upstream.test", "worker/kubelet", "worker/containerd", "worker2/kubelet"} {
		all = append(all, Stream{Name: name})
	}
	for word, want := range map[string]string{
		"": "5", "alpha": "registry-alpha-upstream-test-0 alpha.upstream.test", "worker": "worker/kubelet worker/containerd",
		"kubelet": "worker/kubelet worker2/kubelet", "worker2/kubelet": "worker2/kubelet", "alph": "", "pha": "",
	} {
		chosen, err := Choose(all, word)
		var names []string
		for _, stream := range chosen {
			names = append(names, stream.Name)
		}
		got := strings.Join(names, " ")
		if word == "" {
			got = fmt.Sprint(len(names))
		}
		var useError *UsageError
		if got != want || errors.As(err, &useError) != (want == "") {
			t.Errorf("%q: got %q, %v; want %q", word, got, err, want)
		}
	}
}

func TestParseComponent(t *testing.T) {
	for _, component := range Components() {
		if got, err := ParseComponent(string(component)); got != component || err != nil {
			t.Errorf("%s: %s, %v", component, got, err)
		}
	}
	if _, err := ParseComponent("etcd"); err == nil || !strings.Contains(err.Error(), "cache, node, upstream, webhook, extension, grm, gna") {
		t.Errorf("error %v", err)
	}
}
