package nodeconfig

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// quoteWord quotes text as one word of a systemd command line: in double quotes, with C-style
// escapes, and with "%" and "$" doubled, so that systemd expands neither specifiers nor variables.
func quoteWord(text string) string {
	var word strings.Builder
	word.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '%' || c == '$':
			word.WriteByte(c)
			word.WriteByte(c)
		case c == '"' || c == '\\':
			word.WriteByte('\\')
			word.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&word, `\x%02x`, c)
		default:
			word.WriteByte(c)
		}
	}
	word.WriteByte('"')
	return word.String()
}

// splitWords is the inverse of quoteWord for a whole command line. It accepts plain words and the
// output of quoteWord. Anything else that systemd would expand or unescape is an error.
func splitWords(line string) ([]string, error) {
	var words []string
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			if strings.ContainsAny(word, `%$"'\;`) {
				return nil, fmt.Errorf("unknown syntax in %q", word)
			}
			words, line = append(words, word), rest
			continue
		}
		word, rest, err := unquoteWord(line[1:])
		if err != nil {
			return nil, err
		}
		words, line = append(words, word), rest
	}
	return words, nil
}

// unquoteWord reads up to the closing quote and returns the word and the rest of the line.
func unquoteWord(line string) (word, rest string, err error) {
	var text strings.Builder
	for line != "" {
		c := line[0]
		switch c {
		case '"':
			if rest = line[1:]; rest != "" && rest[0] != ' ' {
				return "", "", errors.New("a quoted word must be followed by a space")
			}
			return text.String(), rest, nil
		case '%', '$':
			if !strings.HasPrefix(line[1:], string(c)) {
				return "", "", fmt.Errorf("systemd would expand a single %q", c)
			}
			text.WriteByte(c)
			line = line[2:]
		case '\\':
			unescaped, length, err := unescape(line)
			if err != nil {
				return "", "", err
			}
			text.WriteByte(unescaped)
			line = line[length:]
		default:
			text.WriteByte(c)
			line = line[1:]
		}
	}
	return "", "", errors.New("a quote is not closed")
}

func unescape(text string) (unescaped byte, length int, err error) {
	if strings.HasPrefix(text, `\"`) || strings.HasPrefix(text, `\\`) {
		return text[1], 2, nil
	}
	if strings.HasPrefix(text, `\x`) && len(text) >= 4 {
		code, err := strconv.ParseUint(text[2:4], 16, 8)
		return byte(code), 4, err
	}
	return 0, 0, errors.New("unknown escape sequence")
}
