package nodeconfig

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

const (
	// UnitName is the systemd unit that runs the script on every node.
	UnitName = "configure-containerd-registries.service"
	// UnitPath is the path of the unit file on a node.
	UnitPath = "/etc/systemd/system/" + UnitName
)

const execStart = "ExecStart="

//go:embed configure-containerd-registries.service
var unitText string

var unitTemplate = template.Must(template.New(UnitName).Parse(unitText))

// Unit returns the systemd unit that configures the registries. It sorts them, so that another
// order does not restart the unit on the nodes. Arguments are quoted and escaped for systemd
// (systemd.service(5), "Command lines").
//
// cleanUps is the number of clean-ups started so far. A clean-up may have changed the unit on a
// node. Another number gives another unit, so gardener-node-agent writes it again although the
// registries are the same. 0 is omitted.
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

// WithoutUpstreams returns the unit without the registries of upstreams. All other lines stay the
// same. A unit that does not run the script is an error.
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
		return 0, nil, fmt.Errorf("parsing the unit's ExecStart line: %w", err)
	}
	if len(words) == 0 || words[0] != ScriptPath {
		return 0, nil, fmt.Errorf("the unit's ExecStart line does not run %s", ScriptPath)
	}
	for _, word := range words[1:] {
		registry, err := ParseArgument(word)
		if err != nil {
			return 0, nil, fmt.Errorf("parsing the unit's ExecStart line: %w", err)
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
