package fieldbugs

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// pageWidth is the number of columns at which prose of the page wraps.
const pageWidth = 100

// word matches what stays on one line: words with code of up to 60 columns in them, a number with
// its unit, or a word.
var word = regexp.MustCompile("[^\\s`]*`[^`]{1,60}`[^\\s`]*|[0-9.]+ (s|MiB)\\b\\S*|\\S+")

// wrap breaks a paragraph or an item of a list between words. The second and later lines of an item
// are indented like its text. A word that is wider than the page gets a line of its own.
func wrap(text string) string {
	prose := strings.TrimLeft(text, " -")
	marker := text[:len(text)-len(prose)]
	indent := "\n" + strings.Repeat(" ", len(marker))
	wrapped, column := marker, len(marker)
	for i, next := range word.FindAllString(prose, -1) {
		width := utf8.RuneCountInString(next)
		switch {
		case i == 0:
		case column+1+width > pageWidth:
			wrapped += indent
			column = len(marker)
		default:
			wrapped += " "
			column++
		}
		wrapped += next
		column += width
	}
	return wrapped + "\n"
}
