package timeline

import (
	"regexp"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// journals are the units whose lines are taken, each with what it takes to be told.
var journals = []struct {
	unit  string
	tells func(logline.Line) bool
}{
	{"containerd", containerdTells},
	{"kubelet", kubeletTells},
	{"gardener-node-agent", nodeAgentTells},
	{"configure-containerd-registries", func(logline.Line) bool { return true }},
}

// shown are the fields that are shown behind a message.
var shown = []string{"error", "host", "err.code", "http.request.uri", "http.response.status", "image", "unitName", "upstream"}

func nodes(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, node := range b.Nodes {
		all = append(all, pulls(b, node)...)
		for _, journal := range journals {
			source := b.ShortName(node.Name) + " " + journal.unit
			for _, line := range b.Journal(node, journal.unit) {
				if line.Program == "systemd" && !systemdTells(line) || line.Program != "systemd" && !journal.tells(line) {
					continue
				}
				all = append(all, Entry{
					Time: line.Time, Source: source, File: node.JournalFile(journal.unit), Level: line.Level, Text: line.Text(shown...),
				})
			}
		}
	}
	return all
}

// systemd tells when a unit starts, ends or fails.
var systemdSays = regexp.MustCompile(`^(Started|Stopped|Failed)\b|Failed with|exited|Scheduled restart|start-limit`)

func systemdTells(line logline.Line) bool { return systemdSays.MatchString(line.Message) }

// routine is what containerd and the kubelet say on nodes that are fine: looking for containers that are gone, settings of the
// node image, a network that is about to be configured, what a kubelet may not see any more.
var routine = regexp.MustCompile(`^(ContainerStatus for|ContainerStatus from|collecting metrics for|failed sending message on channel|` +
	`failed to reload cni|failed to load cni|The image .* is not unpacked|failed check for fsverity|Ignoring unknown key|` +
	`Found 'DiscardUnpackedLayers'|Configuration migrated|failed to check and update container|cleanup warnings|failed to delete|` +
	`get container event|failed to get usage|StopPodSandbox|RemovePodSandbox|error removing|Failed to get status for pod|` +
	`eviction manager: failed to check|Eviction manager: failed to get summary)`)

// nextHost is what containerd says, as information, when a mirror did not serve it.
const nextHost = "trying next host"

// containerdTells leaves out pulls: they are entries of their own.
func containerdTells(line logline.Line) bool {
	if _, _, isPull := logline.PullMessage(line.Message); isPull || routine.MatchString(line.Message) {
		return false
	}
	return line.Level != logline.Info || line.Message == nextHost || logline.ContainerdStarts(line.Message)
}

// aboutPulls are words of lines of the kubelet that have to do with images, disks, and its connection to the API server.
var aboutPulls = regexp.MustCompile(`(?i)pull|evict|no space|lease|node status|PLEG|unauthorized|certificate has expired`)

func kubeletTells(line logline.Line) bool {
	return line.Level != logline.Info && !routine.MatchString(line.Message) && aboutPulls.MatchString(line.Text("error"))
}

func nodeAgentTells(line logline.Line) bool {
	return line.Level != logline.Info || strings.HasPrefix(line.Message, "Successfully applied operating system config") ||
		strings.HasPrefix(line.Message, "Successfully restarted unit")
}
