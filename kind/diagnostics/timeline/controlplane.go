package timeline

import (
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// components are what runs in the seed, by the folder of their logs.
var components = []struct {
	source, namespace, pods string
	tells                   func(logline.Line) bool
}{
	{"extension", "extension-" + v1alpha3.ExtensionType, "gardener-extension-" + v1alpha3.ExtensionType + "-*", extensionTells},
	{"admission", "registry-cache-admission", "*", notInfo},
	{"grm of the shoot", bundle.ShootNamespace, "gardener-resource-manager-*", notInfo},
	{"grm of the seed", "garden", "gardener-resource-manager-*", notInfo},
}

func notInfo(line logline.Line) bool { return line.Level != logline.Info }

// boring are the steps that each reconciliation has; its end is told.
var boring = regexp.MustCompile(`^(Starting|Reconciling the|Adding finalizer|Updated source webhook|Generated webhook)`)

func extensionTells(line logline.Line) bool {
	return line.Level != logline.Info || line.Fields["controller"] == v1alpha3.ExtensionType && !boring.MatchString(line.Message)
}

// controlPlane takes the errors of what runs in the seed, what the extension has reconciled, and gardenlet's log.
func controlPlane(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, component := range components {
		pattern := path.Join(bundle.SeedFolder, "logs", component.namespace, component.pods, "*.log")
		files, err := fs.Glob(b.Files, pattern)
		if err != nil {
			continue // the pattern is a good one
		}
		for _, file := range files {
			for _, line := range b.ContainerLog(file) {
				if component.tells(line) {
					all = append(all, Entry{
						Time: line.Time, Source: component.source, File: file, Level: line.Level, Text: line.Text(append(shown, "name")...),
					})
				}
			}
		}
	}
	return append(all, gardenlet(b)...)
}

// waiting is what gardenlet says while all goes well: of a flow its end is told.
var waiting = regexp.MustCompile(`^(Object did not get ready yet|Waiting|Starting|Started|Succeeded)`)

// gardenlet takes its errors, and the ends of its flows.
func gardenlet(b *bundle.Bundle) []Entry {
	content, err := fs.ReadFile(b.Files, bundle.GardenletFile)
	if err != nil {
		return nil
	}
	var all []Entry
	for text := range strings.Lines(string(content)) {
		line := logline.Payload(text)
		if line.Level == logline.Info && waiting.MatchString(line.Message) {
			continue
		}
		all = append(all, Entry{
			Time: line.Time, Source: "gardenlet", File: bundle.GardenletFile, Level: line.Level,
			Text: line.Text("error", "task", "flow", "kind", "object", "reason"),
		})
	}
	return all
}
