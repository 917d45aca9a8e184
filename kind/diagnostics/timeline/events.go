package timeline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

func faults(b *bundle.Bundle) (all []Entry) {
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

// relevantReasons lists the reasons with which an event of type Normal is relevant. Events of type
// Warning are relevant with any reason but CgroupV1.
var relevantReasons = []string{
	"Killing", "NodeNotReady", "NodeReady", "NodeNotSchedulable", "NodeSchedulable", "NoPods", "OSCApplied", "RegisteredNode",
	"RemovingNode", "ScalingReplicaSet", "SuccessfulDelete", "SystemDUnitRestart", "SystemDUnitStop", "TaintManagerEviction",
}

// cacheReasons lists reasons that are relevant only in events about objects of a cache.
var cacheReasons = []string{"Scheduled", "Started", "SuccessfulCreate", "Provisioning", "ProvisioningSucceeded"}

func events(b *bundle.Bundle) (all []Entry) {
	for _, folder := range []string{bundle.SeedFolder, bundle.ShootFolder} {
		file := path.Join(folder, "events.txt")
		for _, entry := range bundle.Parse(b.Files, file, readEvent) {
			entry.Source, entry.File = folder+" event", file
			all = append(all, entry)
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

// objects returns entries for the creation of caches' Services, which causes no events, and for
// ended containers of caches.
func objects(b *bundle.Bundle) (all []Entry) {
	for _, service := range b.Shoot.CacheServices() {
		all = append(all, Entry{
			Time: service.CreationTimestamp.UTC(), Source: "shoot object", File: b.Shoot.ObjectsFile("services"), Level: logline.Info,
			Text: fmt.Sprintf("Service %s was created with the address %s", service.Name, service.Spec.ClusterIP),
		})
	}
	for _, pod := range b.Shoot.Pods {
		if pod.Labels[v1alpha3.LabelUpstreamHost] == "" {
			continue
		}
		for _, status := range pod.Status.ContainerStatuses {
			if ended := status.LastTerminationState.Terminated; ended != nil {
				all = append(all, Entry{
					Time: ended.FinishedAt.UTC(), Source: "shoot object", File: b.Shoot.ObjectsFile("pods"), Level: logline.Warning,
					Text: fmt.Sprintf("container %s of pod %s ended with exit code %d (%s)", status.Name, pod.Name, ended.ExitCode, ended.Reason),
				})
			}
		}
	}
	return all
}
