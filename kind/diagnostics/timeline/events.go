package timeline

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// faults returns when faults were injected and when they ended.
func faults(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, f := range b.Faults {
		entry := Entry{Source: "fault " + f.ID, File: bundle.FaultsFile, Level: logline.Warning}
		entry.Time, entry.Text = f.Began, fmt.Sprintf("injected: %s %s", f.Target, f.Effect())
		all = append(all, entry)
		if !f.Ends.IsZero() && f.Ends.Before(b.Collected) {
			entry.Time, entry.Text, entry.Level = f.Ends, fmt.Sprintf("ended: %s %s", f.Target, f.Kind), logline.Info
			all = append(all, entry)
		}
	}
	return all
}

// eventLine matches a line of events.txt: time, type, reason, object, count, message.
var eventLine = regexp.MustCompile(`^(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\d+)x\s*(.*)$`)

// relevantReasons are the reasons of normal events about nodes, caches or pulls. All warnings are
// relevant.
var relevantReasons = []string{
	"Killing", "NodeNotReady", "NodeReady", "NodeNotSchedulable", "NodeSchedulable", "NoPods", "OSCApplied", "RegisteredNode",
	"RemovingNode", "ScalingReplicaSet", "SuccessfulDelete", "SystemDUnitRestart", "SystemDUnitStop", "TaintManagerEviction",
}

// cacheReasons are relevant only for objects of a cache.
var cacheReasons = []string{"Scheduled", "Started", "SuccessfulCreate", "Provisioning", "ProvisioningSucceeded"}

func events(b *bundle.Bundle) []Entry {
	var all []Entry
	for _, folder := range []string{bundle.SeedFolder, bundle.ShootFolder} {
		file := path.Join(folder, "events.txt")
		content, err := fs.ReadFile(b.Files, file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			if entry, ok := readEvent(strings.TrimSpace(line)); ok {
				entry.Source, entry.File = folder+" event", file
				all = append(all, entry)
			}
		}
	}
	return all
}

func readEvent(line string) (Entry, bool) {
	parts := eventLine.FindStringSubmatch(line)
	if parts == nil {
		return Entry{}, false
	}
	at, err := time.Parse(time.RFC3339, parts[1])
	count, _ := strconv.Atoi(parts[5]) // the pattern matches digits only
	kind, reason, object := parts[2], parts[3], parts[4]
	warning := kind == "Warning" && reason != "CgroupV1"
	ofCache := strings.Contains(object, "/registry-") && slices.Contains(cacheReasons, reason)
	if err != nil || !warning && !ofCache && !slices.Contains(relevantReasons, reason) {
		return Entry{}, false
	}
	entry := Entry{Time: at, Level: logline.Info, Text: fmt.Sprintf("%s %s: %s", object, reason, parts[6]), Count: count}
	if warning {
		entry.Level = logline.Warning
	}
	return entry, true
}
