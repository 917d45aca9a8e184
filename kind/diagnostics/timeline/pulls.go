package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logline"
)

// Pull is one pull of an image, by the journal of containerd.
type Pull struct {
	Image string
	// Begun or Ended is zero if the journal does not tell.
	Begun, Ended time.Time
	// Failure is why it failed.
	Failure string
}

// Took is how long it took; 0 if that is not known.
func (p Pull) Took() time.Duration {
	if p.Begun.IsZero() || p.Ended.IsZero() {
		return 0
	}
	return p.Ended.Sub(p.Begun)
}

// Pulls reads the pulls out of a journal of containerd, in the order of their ends; those that have not ended are the last. A pull
// of an image that is being pulled already counts as one with it. One that a restart of containerd cut off has failed.
func Pulls(journal []logline.Line) []Pull {
	var all, open []Pull
	for _, line := range journal {
		if logline.ContainerdStarts(line.Message) {
			for _, pull := range open {
				pull.Ended, pull.Failure = line.Time, "cut off: containerd was started anew"
				all = append(all, pull)
			}
			open = nil
			continue
		}
		image, state, ok := logline.PullMessage(line.Message)
		if !ok {
			continue
		}
		pull := Pull{Image: image}
		i := 0
		for i < len(open) && open[i].Image != pull.Image {
			i++
		}
		if state == logline.PullBegan {
			if i == len(open) {
				pull.Begun = line.Time
				open = append(open, pull)
			}
			continue
		}
		if i < len(open) {
			pull = open[i]
			open = append(open[:i:i], open[i+1:]...)
		}
		pull.Ended = line.Time
		if state == logline.PullFailed {
			pull.Failure = Reason(line.Fields["error"])
		}
		all = append(all, pull)
	}
	return append(all, open...)
}

// Reason is the end of an error of containerd: what is before it names the image again and again.
func Reason(text string) string {
	for _, head := range []string{"failed to do request: ", "rpc error: code = Unknown desc = "} {
		text = strings.TrimPrefix(text, head)
	}
	if i := strings.LastIndex(text, `": `); i >= 0 && strings.TrimSpace(text[i+3:]) != "" {
		text = text[i+3:]
	}
	if text == "" {
		return "no reason given"
	}
	return text
}

// pulls makes one entry of each pull, at its beginning; those that worked and were quick are only mentioned.
func pulls(b *bundle.Bundle, node bundle.Node) []Entry {
	var all []Entry
	for _, pull := range Pulls(b.Journal(node, "containerd")) {
		entry := Entry{Time: pull.Begun, Source: b.ShortName(node.Name) + " pull", File: node.JournalFile("containerd"), Level: logline.Info}
		if entry.Time.IsZero() {
			entry.Time = pull.Ended
		}
		switch {
		case pull.Ended.IsZero():
			entry.Level, entry.Text = logline.Warning, pull.Image+" began, and has not ended"
		case pull.Failure != "":
			entry.Level, entry.Text = logline.Error, fmt.Sprintf("%s failed after %.2fs: %s", pull.Image, pull.Took().Seconds(), pull.Failure)
		default:
			entry.Text = fmt.Sprintf("%s pulled in %.2fs", pull.Image, pull.Took().Seconds())
		}
		all = append(all, entry)
	}
	return all
}
