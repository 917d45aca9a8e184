package timeline

import (
	"regexp"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// journals are the journals that are read, with the lines that are relevant.
var journals = []struct {
	unit     string
	relevant func(logline.Line) bool
}{
	{"containerd", containerdRelevant},
	{"kubelet", kubeletRelevant},
	{"gardener-node-agent", nodeAgentRelevant},
	{"configure-containerd-registries", func(logline.Line) bool { return true }},
}

// shown are the fields that are appended to a message.
var shown = []string{"error", "host", "err.code", "http.request.uri", "http.response.status", "image", "unitName", "upstream"}

func nodes(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, node := range b.Nodes {
		all = append(all, pulls(b, node)...)
		for _, journal := range journals {
			source := b.ShortName(node.Name) + " " + journal.unit
			for _, line := range b.Journal(node, journal.unit) {
				relevant := journal.relevant
				if line.Program == "systemd" {
					relevant = systemdRelevant
				}
				if !relevant(line) {
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

// unitChanges matches systemd's messages when a unit starts, ends or fails.
var unitChanges = regexp.MustCompile(`^(Started|Stopped|Failed)\b|Failed with|exited|Scheduled restart|start-limit`)

func systemdRelevant(line logline.Line) bool { return unitChanges.MatchString(line.Message) }

// routine matches warnings and errors of containerd and the kubelet on healthy nodes: about deleted
// containers, settings of the node image, a network that is not configured yet, and objects that
// the kubelet may no longer read.
var routine = regexp.MustCompile(`^(ContainerStatus for|ContainerStatus from|collecting metrics for|failed sending message on channel|` +
	`failed to reload cni|failed to load cni|The image .* is not unpacked|failed check for fsverity|Ignoring unknown key|` +
	`Found 'DiscardUnpackedLayers'|Configuration migrated|failed to check and update container|cleanup warnings|failed to delete|` +
	`get container event|failed to get usage|StopPodSandbox|RemovePodSandbox|error removing|Failed to get status for pod|` +
	`eviction manager: failed to check|Eviction manager: failed to get summary)`)

// nextHost is what containerd logs at info level when a mirror fails.
const nextHost = "trying next host"

// containerdRelevant skips the messages of pulls, since pulls returns entries for them.
func containerdRelevant(line logline.Line) bool {
	if _, _, isPull := logline.PullMessage(line.Message); isPull || routine.MatchString(line.Message) {
		return false
	}
	return line.Level != logline.Info || line.Message == nextHost || logline.ContainerdStarts(line.Message)
}

// aboutPulls matches the kubelet's messages about images, disks, and the connection to the API
// server.
var aboutPulls = regexp.MustCompile(`(?i)pull|evict|no space|lease|node status|PLEG|unauthorized|certificate has expired`)

func kubeletRelevant(line logline.Line) bool {
	return line.Level != logline.Info && !routine.MatchString(line.Message) && aboutPulls.MatchString(line.Text("error"))
}

func nodeAgentRelevant(line logline.Line) bool {
	return line.Level != logline.Info || strings.HasPrefix(line.Message, "Successfully applied operating system config") ||
		strings.HasPrefix(line.Message, "Successfully restarted unit")
}
