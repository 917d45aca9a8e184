package finding

import (
	"fmt"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const slowPull = 10 * time.Second

func pulls(b *bundle.Bundle) (all []Finding) {
	for _, node := range b.Nodes {
		all = append(all, pullsOf(b, node)...)
	}
	for _, upstream := range b.Upstreams {
		all = append(all, bypasses(b, upstream)...)
	}
	return all
}

func pullsOf(b *bundle.Bundle, node bundle.Node) []Finding {
	failed, slow, skipped := count{}, count{}, count{}
	journal := b.Journal(node, "containerd")
	for _, line := range journal {
		if line.Message == "trying next host" && recent(b, line.Time) {
			skipped.add(fmt.Sprintf("%s: %s", line.Fields["host"], timeline.Reason(line.Fields["error"])), line.Time)
		}
	}
	for _, pull := range timeline.Pulls(journal) {
		switch took := pull.Took(); {
		case pull.Ended.IsZero():
			if waited := b.Collected.Sub(pull.Begun); waited >= slowPull && recent(b, pull.Begun) {
				slow.add(fmt.Sprintf("%s had not ended after %.1fs", pull.Image, waited.Seconds()), pull.Begun)
			}
		case !recent(b, pull.Ended):
		case pull.Failure != "":
			failed.add(pull.Image+": "+pull.Failure, pull.Ended)
		case took >= slowPull:
			slow.add(fmt.Sprintf("%s took %.1fs", pull.Image, took.Seconds()), pull.Ended)
		}
	}
	file, since := node.JournalFile("containerd"), clock(b.Since)
	return slices.Concat(
		failed.finding(file, "On %s pulls failed since %s.", node.Name, since),
		slow.finding(file, "On %s pulls took more than %.0fs since %s.", node.Name, slowPull.Seconds(), since),
		skipped.finding(file, "On %s containerd failed to use a host and tried the next one since %s.", node.Name, since),
	)
}

func bypasses(b *bundle.Bundle, upstream bundle.Upstream) []Finding {
	direct := count{}
	for _, r := range upstream.Records.By(accesslog.AskerNode) {
		node := b.NodeAt(r.RemoteAddr)
		if r.Kind != accesslog.KindBase && recent(b, r.Time) && hasMirror(b, node, upstream.Host) {
			direct.add(node, r.Time)
		}
	}
	return direct.finding(upstream.File(bundle.AccessFile),
		"Nodes asked %s directly since %s, although they have a mirror for it: they did not ask the cache, or it did not serve them.",
		upstream.Host, clock(b.Since))
}

func hasMirror(b *bundle.Bundle, node, upstream string) bool {
	return slices.ContainsFunc(b.Workers(), func(n bundle.Node) bool {
		_, found := n.Mirror(upstream)
		return found && b.ShortName(n.Name) == node
	})
}
