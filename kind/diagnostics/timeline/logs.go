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

var journals = []struct {
	unit     string
	relevant func(logline.Line) bool
}{
	{"containerd", containerdRelevant},
	{"kubelet", kubeletRelevant},
	{"gardener-node-agent", nodeAgentRelevant},
	{"configure-containerd-registries", func(logline.Line) bool { return true }},
}

var components = []struct {
	source, namespace, pods string
	relevant                func(logline.Line) bool
}{
	{"extension", "extension-" + v1alpha3.ExtensionType, "gardener-extension-" + v1alpha3.ExtensionType + "-*", extensionRelevant},
	{"admission", "registry-cache-admission", "*", notInfo},
	{"grm of the shoot", bundle.ShootNamespace, "gardener-resource-manager-*", notInfo},
	{"grm of the seed", "garden", "gardener-resource-manager-*", notInfo},
}

var shown = []string{"error", "host", "err.code", "http.request.uri", "http.response.status", "image", "unitName", "upstream"}

func logs(b *bundle.Bundle) (all []Entry) {
	for _, node := range b.Nodes {
		all = append(all, pulls(b, node)...)
		for _, journal := range journals {
			relevant := func(line logline.Line) bool {
				if line.Program == "systemd" {
					return unitChanges.MatchString(line.Message)
				}
				return journal.relevant(line)
			}
			file, source := node.JournalFile(journal.unit), b.ShortName(node.Name)+" "+journal.unit
			all = append(all, entries(source, file, b.Journal(node, journal.unit), relevant, shown)...)
		}
	}
	for _, file := range CacheLogs(b) {
		all = append(all, entries("cache "+path.Base(path.Dir(file)), file, b.Log(file, logline.Container), cacheRelevant, shown)...)
	}
	for _, component := range components {
		for _, file := range glob(b, bundle.SeedFolder, "logs", component.namespace, component.pods, "*.log") {
			lines := b.Log(file, logline.Container)
			all = append(all, entries(component.source, file, lines, component.relevant, append(shown, "name"))...)
		}
	}
	gardenlet := b.Log(bundle.GardenletFile, func(text string) (logline.Line, bool) { return logline.Payload(text), true })
	return append(all, entries("gardenlet", bundle.GardenletFile, gardenlet, gardenletRelevant,
		[]string{"error", "task", "flow", "kind", "object", "reason"})...)
}

func entries(source, file string, lines []logline.Line, relevant func(logline.Line) bool, fields []string) (all []Entry) {
	for _, line := range lines {
		if relevant(line) {
			all = append(all, Entry{Time: line.Time, Source: source, File: file, Level: line.Level, Text: line.Text(fields...)})
		}
	}
	return all
}

// CacheLogs returns the paths of the logs of caches and of the cleaner, including logs from before
// a restart.
func CacheLogs(b *bundle.Bundle) []string {
	return glob(b, bundle.ShootFolder, "logs", "kube-system", "registry-*", "*.log")
}

func glob(b *bundle.Bundle, pattern ...string) []string {
	files, _ := fs.Glob(b.Files, path.Join(pattern...)) // the patterns are valid
	return files
}

// unitChanges matches the messages that systemd logs when a unit starts, ends or fails.
var unitChanges = regexp.MustCompile(`^(Started|Stopped|Failed)\b|Failed with|exited|Scheduled restart|start-limit`)

// routine matches warnings and errors that containerd and the kubelet log even on healthy nodes:
// about deleted containers, settings of the node image, a network that is not configured yet, and
// objects that the kubelet may no longer read.
var routine = regexp.MustCompile(`^(ContainerStatus for|ContainerStatus from|collecting metrics for|failed sending message on channel|` +
	`failed to reload cni|failed to load cni|The image .* is not unpacked|failed check for fsverity|Ignoring unknown key|` +
	`Found 'DiscardUnpackedLayers'|Configuration migrated|failed to check and update container|cleanup warnings|failed to delete|` +
	`get container event|failed to get usage|StopPodSandbox|RemovePodSandbox|error removing|Failed to get status for pod|` +
	`eviction manager: failed to check|Eviction manager: failed to get summary)`)

// containerdRelevant skips messages about pulls, since the function pulls returns entries for them.
// It accepts "trying next host", which containerd logs at info level when a mirror fails.
func containerdRelevant(line logline.Line) bool {
	if _, _, isPull := logline.PullMessage(line.Message); isPull || routine.MatchString(line.Message) {
		return false
	}
	return notInfo(line) || line.Message == "trying next host" || logline.ContainerdStarts(line.Message)
}

// aboutPulls matches the kubelet's messages about images, disks, and the connection to the API
// server.
var aboutPulls = regexp.MustCompile(`(?i)pull|evict|no space|lease|node status|PLEG|unauthorized|certificate has expired`)

func kubeletRelevant(line logline.Line) bool {
	return notInfo(line) && !routine.MatchString(line.Message) && aboutPulls.MatchString(line.Text("error"))
}

func nodeAgentRelevant(line logline.Line) bool {
	return notInfo(line) || strings.HasPrefix(line.Message, "Successfully applied operating system config") ||
		strings.HasPrefix(line.Message, "Successfully restarted unit")
}

// startWarnings matches the warnings that a cache logs at every start. startMessages matches the
// messages about a successful start.
var (
	startWarnings = regexp.MustCompile(`^(Registry does not implement|.*OTEL)`)
	startMessages = regexp.MustCompile(`^(listening on|Registry configured as a proxy cache)`)
)

func cacheRelevant(line logline.Line) bool {
	return !startWarnings.MatchString(line.Message) && (notInfo(line) || startMessages.MatchString(line.Message))
}

func notInfo(line logline.Line) bool { return line.Level != logline.Info }

// routineSteps matches messages of every reconciliation, routineFlow messages of every flow of
// gardenlet. The timeline shows only the end of a reconciliation or a flow.
var (
	routineSteps = regexp.MustCompile(`^(Starting|Reconciling the|Adding finalizer|Updated source webhook|Generated webhook)`)
	routineFlow  = regexp.MustCompile(`^(Object did not get ready yet|Waiting|Starting|Started|Succeeded)`)
)

func extensionRelevant(line logline.Line) bool {
	return notInfo(line) || line.Fields["controller"] == v1alpha3.ExtensionType && !routineSteps.MatchString(line.Message)
}

func gardenletRelevant(line logline.Line) bool {
	return notInfo(line) || !routineFlow.MatchString(line.Message)
}
