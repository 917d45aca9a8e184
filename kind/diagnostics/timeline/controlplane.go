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

// components are the components that run in the seed, with the lines that are relevant.
var components = []struct {
	source, namespace, pods string
	relevant                func(logline.Line) bool
}{
	{"extension", "extension-" + v1alpha3.ExtensionType, "gardener-extension-" + v1alpha3.ExtensionType + "-*", extensionRelevant},
	{"admission", "registry-cache-admission", "*", notInfo},
	{"grm of the shoot", bundle.ShootNamespace, "gardener-resource-manager-*", notInfo},
	{"grm of the seed", "garden", "gardener-resource-manager-*", notInfo},
}

func notInfo(line logline.Line) bool { return line.Level != logline.Info }

// routineSteps are the steps of every reconciliation. Only its end is an entry.
var routineSteps = regexp.MustCompile(`^(Starting|Reconciling the|Adding finalizer|Updated source webhook|Generated webhook)`)

func extensionRelevant(line logline.Line) bool {
	return line.Level != logline.Info || line.Fields["controller"] == v1alpha3.ExtensionType && !routineSteps.MatchString(line.Message)
}

// controlPlane returns the errors of components in the seed, the reconciliations of the extension,
// and the log of gardenlet.
func controlPlane(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, component := range components {
		pattern := path.Join(bundle.SeedFolder, "logs", component.namespace, component.pods, "*.log")
		files, err := fs.Glob(b.Files, pattern)
		if err != nil {
			continue // the pattern is valid
		}
		for _, file := range files {
			for _, line := range b.ContainerLog(file) {
				if component.relevant(line) {
					all = append(all, Entry{
						Time: line.Time, Source: component.source, File: file, Level: line.Level, Text: line.Text(append(shown, "name")...),
					})
				}
			}
		}
	}
	return append(all, gardenlet(b)...)
}

// routineFlow matches what gardenlet logs during a healthy flow. Only the end of a flow is an
// entry.
var routineFlow = regexp.MustCompile(`^(Object did not get ready yet|Waiting|Starting|Started|Succeeded)`)

// gardenlet returns the errors of gardenlet and the ends of its flows.
func gardenlet(b *bundle.Bundle) []Entry {
	content, err := fs.ReadFile(b.Files, bundle.GardenletFile)
	if err != nil {
		return nil
	}
	var all []Entry
	for text := range strings.Lines(string(content)) {
		line := logline.Payload(text)
		if line.Level == logline.Info && routineFlow.MatchString(line.Message) {
			continue
		}
		all = append(all, Entry{
			Time: line.Time, Source: "gardenlet", File: bundle.GardenletFile, Level: line.Level,
			Text: line.Text("error", "task", "flow", "kind", "object", "reason"),
		})
	}
	return all
}
