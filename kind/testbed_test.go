package kind

import (
	"strings"
	"testing"
)

func TestNewValidatesPrefix(t *testing.T) {
	for _, tc := range []struct{ name, prefix, want string }{
		{"default", "", ""},
		{"a name", "field-bug-7", ""},
		{"upper case", "Mine", `prefix "Mine"`},
		{"dots", "a.b", `prefix "a.b"`},
		{"too long", strings.Repeat("x", 31), "longer than 30"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(Options{Prefix: tc.prefix})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
