package fieldbugs

import (
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	x := func(n int) string { return strings.Repeat("ü", n) }
	for name, test := range map[string]struct{ text, want string }{
		"fits":            {"a " + x(98), "a " + x(98) + "\n"},
		"too wide":        {"a " + x(99), "a\n" + x(99) + "\n"},
		"three lines":     {x(60) + " b " + x(60) + " " + x(60), x(60) + " b\n" + x(60) + "\n" + x(60) + "\n"},
		"item":            {"- a " + x(97), "- a\n  " + x(97) + "\n"},
		"item of an item": {"  - a " + x(95), "  - a\n    " + x(95) + "\n"},
		"code":            {x(92) + " (`a b c d`)", x(92) + "\n(`a b c d`)\n"},
		"unit":            {x(92) + " in 1.5 s.", x(92) + " in\n1.5 s.\n"},
		"no unit":         {x(92) + " in 1.5 steps", x(92) + " in 1.5\nsteps\n"},
		"one word":        {"- " + x(120) + " a", "- " + x(120) + "\n  a\n"},
	} {
		if got := wrap(test.text); got != test.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, test.want)
		}
	}
}
