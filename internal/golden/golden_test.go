package golden_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// outcome is a testing.TB that records the failure.
type outcome struct {
	testing.TB
	message string
}

func (o *outcome) Helper() {}

func (o *outcome) Errorf(format string, args ...any) { o.message = fmt.Sprintf(format, args...) }

func (o *outcome) Fatalf(format string, args ...any) { o.Errorf(format, args...); panic(o) }

func compare(name, got string) (o *outcome) {
	o = &outcome{}
	defer func() { _ = recover() }() // Fatalf stops the comparison with a panic
	golden.Compare(o, name, got)
	return o
}

func TestCompare(t *testing.T) {
	t.Setenv("UPDATE_GOLDEN", "")
	tests := []struct {
		name, file, got string
		want            []string // parts of the failure message; none if the comparison passes
	}{
		{"equal", "two-lines.txt", "one\ntwo\n", nil},
		{"another line", "two-lines.txt", "one\n2\n",
			[]string{`line 2: got "2\n", want "two\n"`, "UPDATE_GOLDEN=1 go test ./internal/golden", "got:\none\n2\n"}},
		{"a line less", "two-lines.txt", "one\n", []string{`line 2: got no such line, want "two\n"`}},
		{"a line more", "two-lines.txt", "one\ntwo\nthree\n", []string{`line 3: got "three\n", want no such line`}},
		{"no line end", "two-lines.txt", "one\ntwo", []string{`line 2: got "two", want "two\n"`}},
		{"no such file", "missing.txt", "", []string{"missing.txt", "to create it: UPDATE_GOLDEN=1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			message := compare(test.file, test.got).message
			if len(test.want) == 0 && message != "" {
				t.Errorf("got %q, want the comparison to pass", message)
			}
			for _, part := range test.want {
				if !strings.Contains(message, part) {
					t.Errorf("message %q does not contain %q", message, part)
				}
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("UPDATE_GOLDEN", "1")
	if message := compare("new/file.txt", "text\n").message; message != "" {
		t.Error(message)
	}
	if content, err := os.ReadFile("testdata/new/file.txt"); err != nil || string(content) != "text\n" {
		t.Errorf("the file contains %q, %v", content, err)
	}
}
