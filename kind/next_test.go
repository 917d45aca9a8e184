package kind

import (
	"strings"
	"testing"
)

func TestNextNamesTheTestbedThatIsMeant(t *testing.T) {
	for _, tc := range []struct {
		prefix    string
		want, not string
	}{
		{DefaultPrefix, "make down ", "--prefix"},
		{"other", "bin/testbed down --prefix other ", "make "},
	} {
		t.Run(tc.prefix, func(t *testing.T) {
			testbed, err := New(Options{Prefix: tc.prefix})
			if err != nil {
				t.Fatal(err)
			}
			next := testbed.Next()
			if !strings.Contains(next, tc.want) || strings.Contains(next, tc.not) {
				t.Errorf("want %q and not %q in:\n%s", tc.want, tc.not, next)
			}
		})
	}
}
