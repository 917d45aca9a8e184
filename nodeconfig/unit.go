package nodeconfig

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// The systemd unit that runs the script on every node.
const (
	UnitName = "configure-containerd-registries.service"
	UnitPath = "/etc/systemd/system/" + UnitName

	execStart = "ExecStart="
)

//go:embed configure-containerd-registries.service
var unitText string

var unitTemplate = template.Must(template.New(UnitName).Parse(unitText))

// Unit returns the systemd unit that configures the registries. It sorts them, so that a different
// order does not restart the unit on the nodes. Arguments are quoted and escaped for systemd
// (systemd.service(5), "Command lines").
//
// cleanUps is the number of clean-ups started so far. A clean-up may have changed the unit on a
// node. A new number changes the unit, so that gardener-node-agent writes it again even if the
// registries are the same. The number 0 is omitted.
func Unit(registries []Registry, cleanUps int64) string {
	var unit bytes.Buffer
	data := map[string]any{"CommandLine": commandLine(registries), "CleanUps": cleanUps}
	if err := unitTemplate.Execute(&unit, data); err != nil {
		panic(fmt.Sprintf("the embedded unit is not a valid template: %v", err)) // tests render the unit
	}
	return unit.String()
}

// ParseUnit returns the registries that a unit configures, sorted by upstream. It reads only the
// ExecStart line, so it also parses units of other versions of this extension. A unit that does not
// run the script is an error.
func ParseUnit(unit string) ([]Registry, error) {
	_, registries, err := findCommandLine(strings.Split(unit, "\n"))
	return registries, err
}

// WithoutUpstreams returns the unit without the registries of upstreams. It changes only the
// ExecStart line. A unit that does not run the script is an error.
func WithoutUpstreams(unit string, upstreams []string) (string, error) {
	lines := strings.Split(unit, "\n")
	index, registries, err := findCommandLine(lines)
	if err != nil {
		return "", err
	}
	kept := slices.DeleteFunc(registries, func(r Registry) bool { return slices.Contains(upstreams, r.Upstream) })
	lines[index] = execStart + commandLine(kept)
	return strings.Join(lines, "\n"), nil
}

func commandLine(registries []Registry) string {
	words := []string{ScriptPath}
	for _, registry := range sorted(registries) {
		words = append(words, quoteWord(registry.Argument()))
	}
	return strings.Join(words, " ")
}

func findCommandLine(lines []string) (index int, registries []Registry, err error) {
	index = slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, execStart) })
	if index < 0 {
		return 0, nil, errors.New("the unit has no ExecStart line")
	}
	words, err := splitWords(strings.TrimPrefix(lines[index], execStart))
	if err != nil {
		return 0, nil, fmt.Errorf("parse the unit's ExecStart line: %w", err)
	}
	if len(words) == 0 || words[0] != ScriptPath {
		return 0, nil, fmt.Errorf("the unit's ExecStart line does not run %s", ScriptPath)
	}
	for _, word := range words[1:] {
		registry, err := ParseArgument(word)
		if err != nil {
			return 0, nil, fmt.Errorf("parse the unit's ExecStart line: %w", err)
		}
		registries = append(registries, registry)
	}
	return index, sorted(registries), nil
}

func sorted(registries []Registry) []Registry {
	return slices.SortedFunc(slices.Values(registries), func(a, b Registry) int {
		return strings.Compare(a.Argument(), b.Argument())
	})
}

// The path of the script on a node, and its file mode.
const (
	ScriptPath = "/opt/bin/configure-containerd-registries.sh"
	ScriptMode = 0o744
)

//go:embed configure-containerd-registries.sh
var script string

// Script returns the script that runs on a node. It needs bash, curl, coreutils and systemctl, and
// uses ss if available. Its arguments (Registry.Argument) list all registries: it removes the
// extension's hosts.toml of every other upstream. A loop probes all endpoints: while a cache
// answers, it is the mirror of its upstream. Otherwise, pulls go directly to the upstream.
// StateFile contains the result.
func Script() string {
	return script
}

// quoteWord quotes text as one word of a systemd command line: in double quotes, with C-style
// escapes, and with "%" and "$" doubled, so that systemd expands neither specifiers nor variables.
func quoteWord(text string) string {
	pairs := []string{"%", "%%", "$", "$$", `"`, `\"`, `\`, `\\`, "\x7f", `\x7f`}
	for control := range ' ' {
		pairs = append(pairs, string(control), fmt.Sprintf(`\x%02x`, control))
	}
	return `"` + strings.NewReplacer(pairs...).Replace(text) + `"`
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
		switch c := line[0]; c {
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
